package protocol

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestG3MovedInOneStep: from one FencedLease to another takes two steps, each an
// ordinary write under its own.
func TestG3MovedInOneStep(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	s.FencedLease("orders")
	s.second.Acquire("orders", "second")
	s.second.Acquire("orders", "second")
	if three := s.second.Acquire("orders", "second"); three != 3 {
		t.Fatalf("token %s, want 3", three)
	}

	for name, err := range map[string]error{
		"with a token of the first":     s.second.Modify("account", suite.GuardedBy("orders"), suite.Token("2")),
		"with a token of the second":    s.second.Modify("account", suite.GuardedBy("orders"), suite.Token("3")),
		"with a token in the extra":     s.presents("2").Modify("account", suite.GuardedBy("orders")),
		"with none":                     s.second.Modify("account", suite.GuardedBy("orders")),
		"to a guard that names nothing": s.second.Modify("account", suite.GuardedBy("nobody"), suite.Token("2")),
	} {
		t.Run(name, func(t *testing.T) {
			suite.Refused(t, err, 422, fence.ReasonInvalid, `cannot change from "payments" to`, "in one step: take it off with a token of the first")
		})
	}
	s.untouched("account", "1")

	suite.Admitted(t, s.second.Modify("account", suite.Unguarded, suite.Token("2")))
	// The second step wants a token of the second, and the mark of the first is none.
	suite.Refused(t, s.second.Modify("account", suite.GuardedBy("orders")), 412, fence.ReasonStale, "token 2 is stale: the newest is 3")
	suite.Admitted(t, s.second.Modify("account", suite.GuardedBy("orders"), suite.Token("3")))
	wantMark(s.World, "account", "3")
}

// TestG3PutOn: the label is put on with a claim, and only with one.
func TestG3PutOn(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("account")))

	got := suite.Refused(t, s.second.Modify("account", suite.GuardedBy("payments")), 428, fence.ReasonRequired, "you hold the current token: present 2")
	wantCauses(t, got, causes{fence.CauseCurrent: "2", fence.CauseHolder: "second"})
	suite.Refused(t, s.first.Modify("account", suite.GuardedBy("payments")), 428, fence.ReasonRequired)
	got = suite.Refused(t, s.first.Modify("account", suite.GuardedBy("payments"), suite.Token("1")), 412, fence.ReasonStale)
	wantCauses(t, got, causes{fence.CausePresented: "1", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
	suite.Refused(t, s.first.Modify("account", suite.GuardedBy("payments"), suite.Token("3")), 403, fence.ReasonNeverIssued)
	s.untouched("account", "")

	suite.Admitted(t, s.second.Modify("account", suite.GuardedBy("payments"), suite.Token("2")))
	wantMark(s.World, "account", "2")
}

// TestG3PutOnWithALeftOver: an annotation that stood there before the label
// counts as the claim of whoever puts the label on, and as no mark.
func TestG3PutOnWithALeftOver(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("old", suite.Token("1"))))
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("future", suite.Token("77"))))
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("forged", suite.Token("x"))))

	suite.Refused(t, s.first.Modify("old", suite.GuardedBy("payments")), 412, fence.ReasonStale)
	suite.Refused(t, s.first.Modify("future", suite.GuardedBy("payments")), 403, fence.ReasonNeverIssued)
	suite.Refused(t, s.first.Modify("forged", suite.GuardedBy("payments")), 422, fence.ReasonInvalid)
	for _, name := range []string{"old", "future", "forged"} {
		got := s.second.Modify(name, suite.GuardedBy("payments"), suite.Token("2"))
		suite.Admitted(t, got)
		wantMark(s.World, name, "2")
	}
}

// TestG3TakenOff: the label comes off with a claim, and only with one.
func TestG3TakenOff(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account", "by-nonce", "by-extra", "by-identity")

	got := suite.Refused(t, s.first.Modify("account", suite.Unguarded), 412, fence.ReasonStale, "would leave token 1, but the newest is 2")
	wantCauses(t, got, causes{fence.CauseMark: "1", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
	suite.Refused(t, s.first.Modify("account", suite.Unguarded, withoutToken), 428, fence.ReasonRequired)
	suite.Refused(t, s.first.Modify("account", suite.Unguarded, write("1/off")), 412, fence.ReasonStale, "token 1 is stale")
	suite.Refused(t, s.presents("1").Modify("account", suite.Unguarded), 412, fence.ReasonStale, "token 1 is stale")
	suite.Refused(t, s.first.Modify("account", suite.Unguarded, suite.Token("3")), 403, fence.ReasonNeverIssued)
	s.untouched("account", "1")
	if s.GetConfigMap("account").Labels == nil {
		t.Error("the label is gone")
	}

	suite.Admitted(t, s.second.Modify("account", suite.Unguarded, suite.Token("2")))
	suite.Admitted(t, s.presents("2").Modify("by-extra", suite.Unguarded, suite.Balance("1")))
	suite.Admitted(t, s.second.Modify("by-nonce", suite.Token("2")))
	suite.Admitted(t, s.Admin.Modify("by-nonce", suite.Unguarded, write("2/off")))
	suite.Admitted(t, s.second.Modify("by-identity", suite.Token("2")))
	suite.Admitted(t, s.second.Modify("by-identity", suite.Unguarded, suite.Balance("1")))
	// What is unguarded is free.
	suite.Admitted(t, s.first.Modify("account", suite.Balance("1"), suite.Token("0")))
}
