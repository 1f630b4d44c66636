package protocol

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

func warn(spec *v1alpha1.FencedLeaseSpec) { spec.Enforcement = v1alpha1.EnforcementWarn }

const warned = "admitted only because enforcement is Warn; Deny would refuse it with "

// TestWarn: what G7, G9 and G10 would refuse is admitted, each with a warning
// that says so.
func TestWarn(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, warn, "account", "deleted", "unguarded")
	actor, warnings := s.first.Warned()

	suite.Admitted(t, actor.Modify("account", suite.Balance("1"))) // G7
	warnings.Want(t, warned+"FencingTokenStale: the write presents no token")
	suite.Admitted(t, actor.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"))))
	warnings.Want(t, warned+"FencingTokenRequired: ")
	suite.Admitted(t, actor.Modify("account", suite.Balance("2"), write("1/late"))) // G9
	warnings.Want(t, warned+"FencingTokenStale: token 1 is stale")
	suite.Admitted(t, remove(s.World, actor, "deleted"))
	warnings.Want(t, warned+"FencingTokenRequired: ")
	suite.Admitted(t, actor.Modify("unguarded", suite.Unguarded))
	warnings.Want(t, warned)

	// A write in order is admitted without a word.
	holder, silence := s.second.Warned()
	suite.Admitted(t, holder.Modify("account", suite.Token("2")))
	suite.Admitted(t, holder.Modify("account", suite.Balance("3")))
	silence.Want(t)
}

// TestWarnStrictlyNewer: G10.
func TestWarnStrictlyNewer(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, func(spec *v1alpha1.FencedLeaseSpec) { warn(spec); strictlyNewer(spec) }, "account")
	actor, warnings := s.second.Warned()
	suite.Admitted(t, actor.Modify("account", suite.Token("2")))
	warnings.Want(t)
	suite.Admitted(t, actor.Modify("account", write("2/again")))
	warnings.Want(t, warned+"FencingTokenStale: token 2 already wrote this object")
}

// TestWarnStillRefuses: what is wrong whatever the token is.
func TestWarnStillRefuses(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, warn, "account")
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("free")))
	actor, warnings := s.first.Warned()
	suite.Refused(t, actor.Modify("account", suite.Token("0")), 422, fence.ReasonInvalid, `"0"`)
	suite.Refused(t, s.presents("x").Modify("account", suite.Balance("1")), 422, fence.ReasonInvalid, `"x"`)
	suite.Refused(t, actor.Modify("account", suite.GuardedBy("orders")), 422, fence.ReasonInvalid, "in one step")
	suite.Refused(t, actor.Modify("account", suite.Token("3")), 403, fence.ReasonNeverIssued)
	suite.Refused(t, s.presents("3").Modify("account", suite.Balance("1")), 403, fence.ReasonNeverIssued)
	suite.Refused(t, actor.Modify("free", suite.GuardedBy("payments"), suite.Token("3")), 403, fence.ReasonNeverIssued)
	s.untouched("account", "1")
	s.Must(s.Admin.Delete(s.Ctx, s.GetFencedLease("payments")))
	suite.Refused(t, actor.Modify("account", suite.Balance("1")), 422, fence.ReasonNotFound)
	warnings.Want(t)
}

// TestWarnCached: the two settings together.
func TestWarnCached(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, func(spec *v1alpha1.FencedLeaseSpec) { warn(spec); cached(spec) }, "account")
	actor, warnings := s.first.Warned()
	suite.Admitted(t, actor.Modify("account", suite.Balance("1"), write("1/late")))
	warnings.Want(t, warned+"FencingTokenStale")
	suite.Refused(t, remove(s.World, s.presents("2"), "account"), 422, fence.ReasonInvalid, "seal the object first")
}

// TestWarnIsRecorded: an Event and the metric, and neither of a dry run's.
func TestWarnIsRecorded(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, warn, "account", "rehearsed")
	before, dryBefore := unclaimed(s.World, "warn", "false"), unclaimed(s.World, "warn", "true")

	cm := s.GetConfigMap("rehearsed")
	suite.Balance("1")(cm)
	actor, warnings := s.first.Warned()
	suite.Admitted(t, actor.Update(s.Ctx, cm, client.DryRunAll))
	warnings.Want(t, warned)
	s.untouched("rehearsed", "1")
	if got := unclaimed(s.World, "warn", "true"); got <= dryBefore {
		t.Errorf("dry runs counted: %v, before %v", got, dryBefore)
	}

	event := awaitEvent(s.World, "FenceWarned", "account", func(try string) error {
		return s.first.Modify("account", suite.Balance(try))
	})
	if event.Type != "Warning" || event.Action != "Warn" || event.Regarding.Kind != "ConfigMap" {
		t.Errorf("%+v", event)
	}
	wantNote(t, event, "a write by system:serviceaccount:"+s.Namespace+":worker", "only because enforcement of FencedLease payments is Warn", "(refused otherwise: FencingTokenStale)")
	if got := unclaimed(s.World, "warn", "false"); got <= before {
		t.Errorf("counted: %v, before %v", got, before)
	}
	for _, event := range eventsOf(s.World) {
		if event.Regarding.Name == "rehearsed" {
			t.Errorf("a dry run left an Event: %+v", event)
		}
	}
}
