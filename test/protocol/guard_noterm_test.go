package protocol

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestG6NoTermYet: before the first term there is nothing to protect, and every
// write passes with a warning; one that carries a token does not.
func TestG6NoTermYet(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	worker := w.Pod("worker")
	actor, warnings := worker.Warned()
	const unchecked = `no token of FencedLease "payments" was minted yet: the write was not checked`

	suite.Admitted(t, actor.Create(w.Ctx, w.ConfigMap("account", suite.GuardedBy("payments"))))
	warnings.Want(t, unchecked)
	suite.Admitted(t, actor.Modify("account", suite.Balance("1")))
	warnings.Want(t, unchecked)
	suite.Admitted(t, actor.Create(w.Ctx, w.ConfigMap("short-lived", suite.GuardedBy("payments"))))
	suite.Admitted(t, actor.Modify("short-lived", suite.Unguarded))
	suite.Admitted(t, actor.Modify("short-lived", suite.GuardedBy("payments")))
	suite.Admitted(t, remove(w, actor, "short-lived"))
	if got := len(warnings.Take()); got != 4 {
		t.Errorf("%d warnings, want 4", got)
	}

	suite.Refused(t, actor.Modify("account", suite.Token("1")), 403, fence.ReasonNeverIssued, "token 1 was never issued", "is none")
	suite.Refused(t, w.Admin.WithClaim("1").Modify("account", suite.Balance("2")), 403, fence.ReasonNeverIssued)
	suite.Refused(t, remove(w, w.Admin.WithClaim("1"), "account"), 403, fence.ReasonNeverIssued)
	warnings.Want(t)

	// The first term ends it.
	worker.Acquire("payments", "worker")
	suite.Refused(t, actor.Modify("account", suite.Balance("2")), 428, fence.ReasonRequired)
	suite.Admitted(t, actor.Modify("account", suite.Balance("2"), suite.Token("1")))
	warnings.Want(t)
}
