package leadership

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestWorkWaitsForTheFence: a Lease that hands out no tokens is held, and no work is
// done under it, until a FencedLease wraps it.
func TestWorkWaitsForTheFence(t *testing.T) {
	t.Parallel()
	t.Run("until it is there", func(t *testing.T) {
		t.Parallel()
		w := suite.New(t)
		first := stand(w, w.Pod("first"))
		first.waits()
		w.FencedLease(leaseName)
		held := first.lead(1)
		if held.FencedLease() != leaseName {
			t.Errorf("the FencedLease is %q", held.FencedLease())
		}
	})
	t.Run("or until it is told to end", func(t *testing.T) {
		t.Parallel()
		w := suite.New(t)
		first := stand(w, w.Pod("first"))
		first.waits()
		first.resign()
		released(w)
	})
}

// TestWorkWaitsForSeals: while an object cannot be sealed the Lease is held, and no
// work is done.
func TestWorkWaitsForSeals(t *testing.T) {
	t.Parallel()
	seals := func(o *leader.Options) {
		o.Seal = []leader.Target{{Resource: corev1.SchemeGroupVersion.WithResource("configmaps")}}
	}
	prepare := func(t *testing.T) (*suite.World, *suite.Actor) {
		w := fenced(t)
		guarded(w, account)
		guarded(w, "account-100")
		w.Must(w.Admin.Create(w.Ctx, w.ConfigMap("unguarded")))
		config, err := suite.Cluster.UserConfig(w.Namespace + ":clerk")
		w.Must(err)
		allow(w, "leases", w.Namespace+":clerk", "coordination.k8s.io", "leases", "get", "create", "update")
		return w, w.Actor("clerk", config)
	}
	t.Run("until they are made", func(t *testing.T) {
		t.Parallel()
		w, clerk := prepare(t)
		first := stand(w, clerk, seals)
		first.waits()
		stands(w, "0", "")
		allow(w, "seal", w.Namespace+":clerk", "", "configmaps", "get", "list", "patch")
		first.lead(1)
		stands(w, "0", "1")
		if got := w.GetConfigMap("account-100").Annotations[annotationToken]; got != "1" {
			t.Errorf("account-100 has mark %q as work begins, want 1", got)
		}
		if _, ok := w.GetConfigMap("unguarded").Annotations[annotationToken]; ok {
			t.Error("an object that nobody guards was sealed")
		}
	})
	t.Run("or until it is told to end", func(t *testing.T) {
		t.Parallel()
		w, clerk := prepare(t)
		first := stand(w, clerk, seals)
		first.waits()
		first.resign()
		released(w)
		stands(w, "0", "")
	})
	t.Run("or until another takes over", func(t *testing.T) {
		t.Parallel()
		w, clerk := prepare(t)
		first := stand(w, clerk, seals)
		first.waits()
		second := w.Pod("second")
		second.Acquire(leaseName, "second")
		allow(w, "seal", w.Namespace+":clerk", "", "configmaps", "get", "list", "patch")
		second.Release(leaseName)
		first.lead(3) // it went on to compete, and has no memory of its first token
		stands(w, "0", "3")
	})
}

// released checks that nobody holds the Lease.
func released(w *suite.World) {
	w.T.Helper()
	if holder := w.Lease(leaseName).Spec.HolderIdentity; holder != nil && *holder != "" {
		w.T.Errorf("%s still holds the Lease", *holder)
	}
}

// allow gives a user rights in the test's namespace.
func allow(w *suite.World, name, user, group, resource string, verbs ...string) {
	w.T.Helper()
	meta := metav1.ObjectMeta{Namespace: w.Namespace, Name: name}
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs},
	}}))
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
}
