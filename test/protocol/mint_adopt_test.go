package protocol

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// createFencedLease creates one and does not wait; it is deleted after the test,
// and its Lease too, for namespaces that tests share.
func createFencedLease(w *suite.World, name string, change ...func(*v1alpha1.FencedLeaseSpec)) *v1alpha1.FencedLease {
	w.T.Helper()
	fl := &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	for _, c := range change {
		c(&fl.Spec)
	}
	w.Must(w.Admin.Create(w.Ctx, fl))
	w.T.Cleanup(func() {
		_ = client.IgnoreNotFound(w.Admin.Delete(w.Ctx, fl))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: fl.LeaseName()}}
		if fl.Namespace != cluster.Namespace { // there it is the operator's own
			_ = client.IgnoreNotFound(w.Admin.Delete(w.Ctx, lease))
		}
	})
	return fl
}

// readyMessage is the message of the Ready condition.
func readyMessage(w *suite.World, name string) string {
	w.T.Helper()
	c := meta.FindStatusCondition(w.GetFencedLease(name).Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return ""
	}
	return c.Message
}

// Leases on which the cluster itself depends are never fenced, and the condition
// says why; their neighbours are.
func TestM9NeverAdopted(t *testing.T) { // not beside the other that uses kube-system
	w := suite.New(t)
	yes := true
	for _, tc := range []struct {
		namespace, name string
		allow           *bool
		why             string // "" where it is fenced
	}{
		{cluster.Namespace, "fencedlease", nil, "operator's own namespace"},
		{cluster.Namespace, "another", &yes, "operator's own namespace"},
		{corev1.NamespaceNodeLease, "node-1", &yes, "heartbeats of nodes"},
		{metav1.NamespaceSystem, "kube-scheduler", nil, "spec.allowControlPlane"},
		{metav1.NamespaceSystem, "kube-controller-manager", nil, "spec.allowControlPlane"},
		{metav1.NamespaceSystem, "another", nil, ""},
		{w.Namespace, "kube-scheduler", nil, ""},
	} {
		t.Run(tc.namespace+"/"+tc.name, func(t *testing.T) {
			there := w.Elsewhere(tc.namespace)
			there.T = t
			createFencedLease(there, tc.name, func(s *v1alpha1.FencedLeaseSpec) { s.AllowControlPlane = tc.allow })
			if tc.why == "" {
				there.AwaitCondition(tc.name, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
				return
			}
			there.AwaitCondition(tc.name, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLeaseNotAllowed)
			there.AwaitCondition(tc.name, v1alpha1.ConditionHeld, metav1.ConditionUnknown, v1alpha1.ReasonNotFenced)
			if message := readyMessage(there, tc.name); !containsText(message, tc.why) {
				t.Errorf("the message is %q, want %q in it", message, tc.why)
			}
			lease := &coordinationv1.Lease{}
			if err := there.Admin.Get(w.Ctx, there.Key(tc.name), lease); err == nil && suite.Keys(lease) != (fence.Keys{}) {
				t.Errorf("its Lease has our keys: %+v", suite.Keys(lease))
			}
		})
	}
}

// The leases of the control plane are fenced by choice; a change of mind is seen.
func TestM9AllowControlPlane(t *testing.T) { // not beside the other that uses kube-system
	w := suite.New(t).Elsewhere(metav1.NamespaceSystem)
	for _, name := range []string{"kube-scheduler-x", "x-kube-controller-manager"} {
		fl := createFencedLease(w, name, func(s *v1alpha1.FencedLeaseSpec) {
			s.LeaseName = map[string]string{
				"kube-scheduler-x": "kube-scheduler", "x-kube-controller-manager": "kube-controller-manager",
			}[name]
		})
		w.AwaitCondition(name, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLeaseNotAllowed)

		before := fl.DeepCopy()
		yes := true
		fl.Spec.AllowControlPlane = &yes
		w.Must(w.Admin.Patch(w.Ctx, fl, client.MergeFrom(before)))
		w.AwaitCondition(name, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
		if token := w.Admin.Acquire(fl.LeaseName(), "one"); token != 1 {
			t.Errorf("token %s, want 1", token)
		}
	}
}

// Made anew without leave, a FencedLease does not get the Lease back through an
// acquisition either: it stays retired, and the acquisition passes.
func TestM9RecreatedWithoutLeave(t *testing.T) { // not beside the others that use kube-system
	w := suite.New(t).Elsewhere(metav1.NamespaceSystem)
	yes := true
	fl := createFencedLease(w, "kube-scheduler", func(s *v1alpha1.FencedLeaseSpec) { s.AllowControlPlane = &yes })
	w.AwaitCondition("kube-scheduler", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
	w.Admin.Acquire("kube-scheduler", "one")
	w.Must(w.Admin.Delete(w.Ctx, fl))
	w.AwaitRetired("kube-scheduler")

	createFencedLease(w, "kube-scheduler")
	w.AwaitCondition("kube-scheduler", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLeaseNotAllowed)
	lease, err := w.Admin.TryAcquire("kube-scheduler", "two")
	suite.Admitted(t, err)
	if keys := suite.Keys(lease); !keys.IsRetired() || keys.TokenFor != "" || keys.Token != "1" {
		t.Errorf("keys after the acquisition: %+v", keys)
	}
}

// Of two FencedLeases for one Lease the first keeps it. The second says so, and
// takes over where the first ends, with its tokens.
func TestM9LeaseConflict(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	first := w.FencedLease("first", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseName = "payments" })
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	kept := held("first", "1", "worker", pod.Identity())

	createFencedLease(w, "second", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseName = "payments" })
	w.AwaitCondition("second", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLeaseConflict)
	w.AwaitCondition("second", v1alpha1.ConditionHeld, metav1.ConditionUnknown, v1alpha1.ReasonNotFenced)
	if message := readyMessage(w, "second"); !containsText(message, "wrapped by FencedLease first") {
		t.Errorf("the message is %q", message)
	}
	w.AwaitEvent("second", "LeaseConflict", "wrapped by FencedLease first", "delete one of the two")
	w.AwaitCondition("first", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
	wantKeys(t, "in the conflict", w.Lease("payments"), kept)
	if got := w.GetFencedLease("second").Status; got.Token != 0 || got.Holder != (v1alpha1.Holder{}) {
		t.Errorf("the second shows the first's: %+v", got)
	}

	w.Must(w.Admin.Delete(w.Ctx, first))
	w.AwaitCondition("second", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
	kept.FencedBy = "second"
	wantKeys(t, "taken over", w.Lease("payments"), kept)
	w.AwaitToken("second", 1)
	if token := pod.Acquire("payments", "next"); token != 2 {
		t.Errorf("token %s, want 2", token)
	}
}

// Where the second goes, nothing happens to the first.
func TestM9LeaseConflictEndsWithTheSecond(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	second := createFencedLease(w, "second", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseName = "payments" })
	w.AwaitCondition("second", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLeaseConflict)
	w.Must(w.Admin.Delete(w.Ctx, second))
	if token := pod.Acquire("payments", "next"); token != 2 {
		t.Errorf("token %s, want 2", token)
	}
	wantKeys(t, "after the second is gone", w.Lease("payments"), held("payments", "2", "next", pod.Identity()))
	suite.Refused(t, w.Admin.Delete(w.Ctx, w.Lease("payments")), 422, fence.ReasonFencedLeaseExists)
}
