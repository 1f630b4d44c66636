package protocol

import (
	"testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

func cached(spec *v1alpha1.FencedLeaseSpec) { spec.Verification = v1alpha1.VerificationCached }

// TestCached: the claim may be accepted on watched values, and everything is
// refused as it is on live ones. That nothing is read then, TestG4CannotRead
// shows.
func TestCached(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, cached, "account", "deleted")

	got := suite.Refused(t, s.first.Modify("account", suite.Balance("1"), write("1/late")), 412, fence.ReasonStale, "token 1 is stale: the newest is 2")
	wantCauses(t, got, causes{fence.CausePresented: "1", fence.CauseMark: "1", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
	suite.Refused(t, s.first.Modify("account", suite.Balance("1")), 412, fence.ReasonStale, "would leave token 1")
	suite.Refused(t, s.first.Modify("account", suite.Token("3")), 403, fence.ReasonNeverIssued)
	suite.Refused(t, s.first.Modify("account", suite.Token("0")), 422, fence.ReasonInvalid)
	suite.Refused(t, s.second.Modify("account", suite.GuardedBy("orders")), 422, fence.ReasonInvalid)
	s.untouched("account", "1")

	suite.Admitted(t, s.second.Modify("account", suite.Token("2")))
	suite.Admitted(t, s.second.Modify("account", suite.Balance("1")))
	suite.Refused(t, s.first.Modify("account", suite.Balance("2")), 428, fence.ReasonRequired)
	suite.Refused(t, s.first.Modify("account", suite.Token("1")), 412, fence.ReasonStale)
	suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("2"))))
	suite.Refused(t, s.first.Create(s.Ctx, s.ConfigMap("late", suite.GuardedBy("payments"), suite.Token("1"))), 412, fence.ReasonStale)

	// A token that no watch has seen yet is read, not refused.
	for want := fence.Token(3); want < 8; want++ {
		if got := s.second.Acquire("payments", "second"); got != want {
			t.Fatalf("token %s, want %s", got, want)
		}
		suite.Admitted(t, s.second.Modify("account", suite.Token(want.String())))
	}
}

// TestCachedDelete: under Cached only the mark shuts a former leader out for
// good, and a delete cannot store one: seal first (G11).
func TestCachedDelete(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, cached, "account", "other")
	const sealFirst = "this request cannot store its token: seal the object first, by writing token 2"
	suite.Refused(t, remove(s.World, s.second, "account"), 422, fence.ReasonInvalid, sealFirst)
	got := suite.Refused(t, remove(s.World, s.presents("2"), "account"), 422, fence.ReasonInvalid, sealFirst)
	wantCauses(t, got, causes{fence.CausePresented: "2", fence.CauseMark: "1", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
	suite.Refused(t, remove(s.World, s.first, "account"), 428, fence.ReasonRequired)
	suite.Refused(t, remove(s.World, s.presents("1"), "account"), 412, fence.ReasonStale)
	s.untouched("account", "1")

	for _, name := range []string{"account", "other"} {
		suite.Admitted(t, s.second.Modify(name, suite.Token("2")))
	}
	suite.Admitted(t, remove(s.World, s.second, "account"))
	suite.Admitted(t, remove(s.World, s.presents("2"), "other"))
}

// TestCachedStatus: the same for /status.
func TestCachedStatus(t *testing.T) {
	t.Parallel()
	s := accounts(t, cached)
	suite.Refused(t, report(s.World, s.presents("3"), "untouched", paid("1")), 422, fence.ReasonInvalid, "seal the object first, by writing token 3")
	suite.Refused(t, report(s.World, s.presents("2"), "sealed", paid("1")), 412, fence.ReasonStale)
	wantPaid(s.World, "untouched", "", "2")
	suite.Admitted(t, modifyLedger(s.World, s.first, "untouched", suite.Token("3")))
	suite.Admitted(t, report(s.World, s.presents("3"), "untouched", paid("1")))
	suite.Admitted(t, report(s.World, s.first, "sealed", paid("1")))
}
