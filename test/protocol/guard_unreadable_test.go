package protocol

import (
	"errors"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// claims is a merge patch that presents a token, and is a change each time.
func claims(token string) string {
	return `{"metadata":{"annotations":{"fencedlease.io/token":"` + token + `","fencedlease.io/write":"` + token + `/` + rand.String(10) + `"}}}`
}

// wantRetry checks that a refusal asks the client to try again.
func wantRetry(t *testing.T, got suite.Refusal) {
	t.Helper()
	if got.Details == nil || got.Details.RetryAfterSeconds < 1 {
		t.Errorf("no retryAfterSeconds: %+v", got.Details)
	}
}

// TestG4RetiredLease: a FencedLease that is there, and its Lease still retired:
// nobody knows which token is current.
func TestG4RetiredLease(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	asOperator := s.Operator()
	// The controller adopts it again at once, so that a write has to be quick.
	s.Eventually("a write meets a retired Lease", func() error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "payments"}}
		s.Must(asOperator.Patch(s.Ctx, lease, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"fencedlease.io/retired":"true"}}}`))))
		err := merge(s.World, s.second.Impatient(), "account", claims("2"))
		if err == nil { // too late
			return errors.New("it was admitted")
		}
		got := suite.Refused(t, err, 503, fence.ReasonUnavailable, `the Lease of FencedLease "payments" is still retired`, "try again")
		wantRetry(t, got)
		return nil
	})
	// client-go tries again by itself, and passes once the Lease is adopted.
	suite.Admitted(t, s.second.Modify("account", suite.Token("2"), suite.Balance("1")))
}

// TestG4LeaseOfAnother: the second of two FencedLeases for one Lease guards
// nothing: waiting would not help, so this is no 503.
func TestG4LeaseOfAnother(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	second := &v1alpha1.FencedLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "late"},
		Spec:       v1alpha1.FencedLeaseSpec{LeaseName: "payments"},
	}
	s.Must(s.Admin.Create(s.Ctx, second))
	s.AwaitCondition("late", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLeaseConflict)

	for name, err := range map[string]error{
		"with a claim":   s.second.Create(s.Ctx, s.ConfigMap("account", suite.GuardedBy("late"), suite.Token("2"))),
		"without":        s.second.Create(s.Ctx, s.ConfigMap("account", suite.GuardedBy("late"))),
		"with the extra": s.presents("2").Create(s.Ctx, s.ConfigMap("account", suite.GuardedBy("late"))),
	} {
		t.Run(name, func(t *testing.T) {
			got := suite.Refused(t, err, 422, fence.ReasonLeaseConflict, `wrapped by FencedLease "payments", which keeps it`, "delete one of the two")
			if got.Details.RetryAfterSeconds != 0 {
				t.Error("it asks to try again")
			}
		})
	}
	suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap("account", suite.GuardedBy("payments"), suite.Token("2"))))

	// It inherits the Lease when the first goes.
	s.Must(s.Admin.Delete(s.Ctx, s.GetFencedLease("payments")))
	s.AwaitCondition("late", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
	suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap("other", suite.GuardedBy("late"), suite.Token("2"))))
}

// TestG4CannotRead takes the operator's right to read Leases away for a moment.
// Not in parallel: everyone's guard is closed meanwhile.
func TestG4CannotRead(t *testing.T) {
	s := secondTerm(t, nil, "account")
	s.FencedLease("cached", func(spec *v1alpha1.FencedLeaseSpec) { spec.Verification = v1alpha1.VerificationCached })
	s.second.Acquire("cached", "second")
	s.Guarded("quick", "cached", 1)
	s.AwaitToken("cached", 1) // and so the watches have it
	s.AwaitToken("payments", 2)
	takeLeaseReads(s.World)

	s.Eventually("the guard cannot read the Lease", func() error {
		err := merge(s.World, s.second.Impatient(), "account", claims("2"))
		if err == nil {
			return errors.New("it can still")
		}
		return nil
	})
	for _, patch := range []string{claims("2"), `{"data":{"balance":"1"}}`} {
		got := suite.Refused(t, merge(s.World, s.second.Impatient(), "account", patch), 503, fence.ReasonUnavailable,
			"the current token cannot be read (the API server answered Forbidden)", "nothing is admitted; try again")
		wantRetry(t, got)
	}
	// A claim that is too old for a watched token is too old for good: no read is
	// needed to refuse it. Under Cached, none is needed to admit one either.
	suite.Refused(t, merge(s.World, s.first.Impatient(), "account", claims("1")), 412, fence.ReasonStale)
	suite.Admitted(t, merge(s.World, s.second.Impatient(), "quick", claims("1")))
}

// takeLeaseReads takes `get` on Leases from the operator until the test ends, but
// in its own namespace: its leader election goes on.
func takeLeaseReads(w *suite.World) {
	w.T.Helper()
	own := metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "leader-election-of-a-test"}
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.Role{ObjectMeta: own, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get"},
	}}}))
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: own,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.Namespace, Name: cluster.ServiceAccount}},
	}))
	setLeaseReads(w, false)
	w.T.Cleanup(func() {
		setLeaseReads(w, true)
		w.Eventually("the operator reads Leases again", func() error {
			return merge(w, w.Admin.Impatient(), "account", claims("2"))
		})
		w.Must(w.Admin.Delete(w.Ctx, &rbacv1.RoleBinding{ObjectMeta: own}))
		w.Must(w.Admin.Delete(w.Ctx, &rbacv1.Role{ObjectMeta: own}))
	})
}

func setLeaseReads(w *suite.World, may bool) {
	w.T.Helper()
	role := &rbacv1.ClusterRole{}
	w.Must(w.Admin.Get(w.Ctx, types.NamespacedName{Name: "fencedlease"}, role))
	for i, rule := range role.Rules {
		if !slices.Contains(rule.Resources, "leases") {
			continue
		}
		verbs := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == "get" })
		if may {
			verbs = append(verbs, "get")
		}
		role.Rules[i].Verbs = verbs
	}
	w.Must(w.Admin.Update(w.Ctx, role))
}
