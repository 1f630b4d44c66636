package protocol

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestG8NeverIssued: a forged future token would lock everyone out.
func TestG8NeverIssued(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("free")))

	for name, err := range map[string]error{
		"update":         s.second.Modify("account", suite.Token("3")),
		"patch":          merge(s.World, s.second, "account", `{"metadata":{"annotations":{"fencedlease.io/token":"3"}}}`),
		"by the extra":   s.presents("3").Modify("account", suite.Balance("1")),
		"create":         s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("3"))),
		"label":          s.second.Modify("free", suite.GuardedBy("payments"), suite.Token("3")),
		"label off":      s.second.Modify("account", suite.Unguarded, suite.Token("3")),
		"delete":         remove(s.World, s.presents("3"), "account"),
		"token and data": s.first.Modify("account", suite.Token("3"), suite.Balance("1")),
		"with its nonce": s.first.Modify("account", suite.Token("3"), write("3/x")),
	} {
		t.Run(name, func(t *testing.T) {
			got := suite.Refused(t, err, 403, fence.ReasonNeverIssued, "token 3 was never issued", `the newest of FencedLease "payments" is 2`, "only from your own")
			if got.Causes[fence.CausePresented] != "3" || got.Causes[fence.CauseCurrent] != "2" {
				t.Errorf("causes %v", got.Causes)
			}
		})
	}
	s.untouched("account", "1")

	// The same token, once it is minted.
	s.first.Acquire("payments", "first")
	suite.Admitted(t, s.first.Modify("account", suite.Token("3")))
	suite.Admitted(t, s.first.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("3"))))
	suite.Admitted(t, s.first.Modify("free", suite.GuardedBy("payments"), suite.Token("3")))
	suite.Admitted(t, remove(s.World, s.presents("3"), "account"))
}

// TestG8AnothersToken: tokens of another FencedLease are numbers of another
// count: a higher one was never issued here, a lower one is stale.
func TestG8AnothersToken(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	s.FencedLease("orders")
	s.Guarded("order-1", "orders", fence.None)
	var orders fence.Token
	for range 3 {
		orders = s.first.Acquire("orders", "first")
	}
	suite.Refused(t, s.first.Modify("account", suite.Token(orders.String())), 403, fence.ReasonNeverIssued, `of FencedLease "payments" is 2`)
	suite.Refused(t, s.second.Modify("order-1", suite.Token("2")), 412, fence.ReasonStale, "token 2 is stale: the newest is 3")
	s.untouched("account", "1")
	suite.Admitted(t, s.first.Modify("order-1", suite.Token(orders.String())))
	suite.Admitted(t, s.second.Modify("account", suite.Token("2")))
}
