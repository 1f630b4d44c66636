package protocol

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestG12DryRun: a dry run gets the verdict that the write would get, and nothing
// is stored.
func TestG12DryRun(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	try := func(a *suite.Actor, change ...func(client.Object)) error {
		cm := s.GetConfigMap("account")
		for _, c := range change {
			c(cm)
		}
		return a.Update(s.Ctx, cm, client.DryRunAll)
	}
	suite.Refused(t, try(s.first, suite.Balance("1")), 412, fence.ReasonStale, "would leave token 1")
	suite.Refused(t, try(s.second, suite.Balance("1")), 428, fence.ReasonRequired, "present 2")
	suite.Refused(t, try(s.first, write("1/late")), 412, fence.ReasonStale, "token 1 is stale")
	suite.Refused(t, try(s.second, suite.Token("3")), 403, fence.ReasonNeverIssued)
	suite.Refused(t, try(s.second, suite.Token("+2")), 422, fence.ReasonInvalid)
	suite.Refused(t, remove(s.World, s.first, "account", client.DryRunAll), 428, fence.ReasonRequired)
	suite.Refused(t, s.first.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("1")), client.DryRunAll), 412, fence.ReasonStale)

	suite.Admitted(t, try(s.second, suite.Token("2"), suite.Balance("1")))
	suite.Admitted(t, try(s.presents("2"), suite.Balance("1")))
	suite.Admitted(t, remove(s.World, s.second, "account", client.DryRunAll))
	suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("2")), client.DryRunAll))
	s.untouched("account", "1")
	// Nothing of it counts afterwards.
	suite.Refused(t, s.second.Modify("account", suite.Balance("1")), 428, fence.ReasonRequired)
	suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("2"))))
}
