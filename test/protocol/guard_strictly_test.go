package protocol

import (
	"testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

func strictlyNewer(spec *v1alpha1.FencedLeaseSpec) {
	spec.TokenOrder = v1alpha1.TokenOrderStrictlyNewer
}

// TestG10StrictlyNewer: one write per object and term, but for the delete and the
// label's removal.
func TestG10StrictlyNewer(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, strictlyNewer, "account", "unguarded", "by-extra")

	suite.Admitted(t, s.second.Modify("account", suite.Token("2"), suite.Balance("1")))
	for name, err := range map[string]error{
		"by a nonce":       s.second.Modify("account", write("2/x"), suite.Balance("2")),
		"by the identity":  s.second.Modify("account", suite.Balance("2")),
		"by the extra":     s.presents("2").Modify("account", suite.Balance("2")),
		"a nonce, no data": s.second.Modify("account", write("2/x")),
	} {
		t.Run(name, func(t *testing.T) {
			got := suite.Refused(t, err, 412, fence.ReasonStale, "token 2 already wrote this object", "tokenOrder is StrictlyNewer")
			wantCauses(t, got, causes{fence.CausePresented: "2", fence.CauseMark: "2", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
		})
	}
	suite.Refused(t, s.first.Modify("account", suite.Balance("2")), 428, fence.ReasonRequired)
	suite.Refused(t, s.first.Modify("account", suite.Token("1")), 412, fence.ReasonStale, "token 1 is stale")
	if got := s.GetConfigMap("account").Data["balance"]; got != "1" {
		t.Errorf("balance %s, want 1", got)
	}

	// A create is the write of its term.
	suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("2"))))
	suite.Refused(t, s.second.Modify("new", suite.Balance("1")), 412, fence.ReasonStale, "already wrote")

	// The label's removal and the delete are exempt, with the claim that wrote.
	suite.Admitted(t, s.second.Modify("unguarded", suite.Token("2"), suite.Balance("1")))
	suite.Admitted(t, s.second.Modify("unguarded", suite.Unguarded))
	suite.Admitted(t, s.presents("2").Modify("by-extra", suite.Balance("1")))
	suite.Admitted(t, remove(s.World, s.presents("2"), "by-extra"))
	suite.Admitted(t, remove(s.World, s.second, "new"))

	// The next term may write again, once.
	s.first.Acquire("payments", "first")
	suite.Admitted(t, s.first.Modify("account", suite.Token("3"), suite.Balance("3")))
	suite.Refused(t, s.first.Modify("account", suite.Balance("4")), 412, fence.ReasonStale, "token 3 already wrote")
}

// TestG10Status: a status write leaves the mark, so it is held to the same order.
func TestG10Status(t *testing.T) {
	t.Parallel()
	s := accounts(t, strictlyNewer)
	suite.Refused(t, report(s.World, s.presents("3"), "sealed", paid("1")), 412, fence.ReasonStale, "token 3 already wrote this object")
	suite.Admitted(t, report(s.World, s.presents("3"), "untouched", paid("1")))
	wantPaid(s.World, "untouched", "1", "2")
}

// TestG10NotOlder: in the default order a term writes as often as it likes.
func TestG10NotOlder(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	suite.Admitted(t, s.second.Modify("account", suite.Token("2"), suite.Balance("1")))
	suite.Admitted(t, s.second.Modify("account", suite.Balance("2")))
	suite.Admitted(t, s.presents("2").Modify("account", suite.Balance("3")))
}
