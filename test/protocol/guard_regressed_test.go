package protocol

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// loseCounter deletes the FencedLease and then its Lease, as a restore from an
// old backup would, and makes the FencedLease anew.
func (s *scene) loseCounter() {
	s.T.Helper()
	s.Must(s.Admin.Delete(s.Ctx, s.GetFencedLease("payments")))
	s.Eventually("the Lease is deleted", func() error {
		err := s.Admin.Delete(s.Ctx, s.Lease("payments"))
		if apierrors.IsConflict(err) || err == nil {
			return err
		}
		s.Must(err)
		return nil
	})
	s.FencedLease("payments")
}

// TestG5LostCounter: marks above current mean that tokens would repeat. Nothing
// is written, until minToken stands above every mark.
func TestG5LostCounter(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	s.loseCounter()

	refuses := func(current string, err error) {
		t.Helper()
		got := suite.Refused(t, err, 422, fence.ReasonRegressed, "written under token 2", `the newest token of FencedLease "payments" is `+current,
			"Set spec.minToken", "to at least 3")
		if got.Causes[fence.CauseMark] != "2" {
			t.Errorf("causes %v", got.Causes)
		}
	}
	refuses("none", s.second.Modify("account", suite.Balance("1")))
	refuses("none", s.second.Modify("account", suite.Token("1")))
	refuses("none", remove(s.World, s.second, "account"))
	one := s.first.Acquire("payments", "first")
	if one != 1 {
		t.Fatalf("token %s, want 1", one)
	}
	refuses("1", s.first.Modify("account", suite.Token("1"), suite.Balance("1")))
	refuses("1", s.first.Modify("account", suite.Balance("1")))
	refuses("1", s.first.Modify("account", suite.Unguarded))
	refuses("1", remove(s.World, s.presents("1"), "account"))
	s.untouched("account", "2")

	// What the message says heals it: the holder gets a higher token with its
	// next renewal.
	s.ChangeFencedLease("payments", func(fl *v1alpha1.FencedLease) { fl.Spec.MinToken = 3 })
	s.Eventually("the holder's token rises", func() error {
		lease, err := s.first.Renew("payments")
		if err == nil && suite.Keys(lease).CurrentToken() != 3 {
			return apierrors.NewBadRequest("token " + suite.Keys(lease).Token)
		}
		return err
	})
	suite.Admitted(t, s.first.Modify("account", suite.Token("3"), suite.Balance("1")))
	wantMark(s.World, "account", "3")
}

// TestG5UnderWarn: enforcement Warn does not admit it: the marks would be wrong
// for good.
func TestG5UnderWarn(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	s.loseCounter()
	s.ChangeFencedLease("payments", func(fl *v1alpha1.FencedLease) { fl.Spec.Enforcement = v1alpha1.EnforcementWarn })
	s.Eventually("enforcement is Warn", func() error {
		return s.second.Create(s.Ctx, s.ConfigMap("probe", suite.GuardedBy("payments")), client.DryRunAll)
	})
	suite.Refused(t, s.second.Modify("account", suite.Balance("1")), 422, fence.ReasonRegressed)
	s.untouched("account", "2")
}
