package protocol

import (
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// The Lease carries the counter: it stays while its FencedLease is there.
func TestM7DeleteIsRefused(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	fl := w.FencedLease("payments")
	heldLease(w, w.Admin, "unfenced", "somebody")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")

	for _, actor := range []*suite.Actor{pod, w.Admin, w.Operator()} {
		refusal := suite.Refused(t, actor.Delete(w.Ctx, w.Lease("payments")), 422, fence.ReasonFencedLeaseExists,
			`FencedLease "payments"`, "delete the FencedLease first", "release the Lease instead")
		if refusal.Causes[fence.CauseCurrent] != "1" || refusal.Causes[fence.CauseHolder] != "worker" {
			t.Errorf("causes %v", refusal.Causes)
		}
	}
	suite.Refused(t, w.Admin.Delete(w.Ctx, w.Lease("payments"), client.DryRunAll), 422, fence.ReasonFencedLeaseExists)
	suite.Refused(t, w.Admin.DeleteAllOf(w.Ctx, &coordinationv1.Lease{}, client.InNamespace(w.Namespace)),
		422, fence.ReasonFencedLeaseExists)
	wantKeys(t, "after all attempts", w.Lease("payments"), held("payments", "1", "worker", pod.Identity()))

	// Retired or not, as soon as the FencedLease is gone.
	w.Must(w.Admin.Delete(w.Ctx, fl))
	suite.Admitted(t, w.Admin.Delete(w.Ctx, w.Lease("payments")))
}

// A collection of Leases that nobody fences goes as ever, and so does one whose
// FencedLease is gone.
func TestM7DeleteCollection(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	fl := w.FencedLease("payments")
	for _, name := range []string{"a", "b"} {
		heldLease(w, w.Admin, name, "somebody")
	}
	w.Must(w.Admin.Delete(w.Ctx, fl))
	w.AwaitRetired("payments")
	suite.Admitted(t, w.Admin.DeleteAllOf(w.Ctx, &coordinationv1.Lease{}, client.InNamespace(w.Namespace)))
	var left coordinationv1.LeaseList
	w.Must(w.Admin.List(w.Ctx, &left, client.InNamespace(w.Namespace)))
	if len(left.Items) != 0 {
		t.Errorf("%d Leases are left", len(left.Items))
	}
}

// A retired Lease whose FencedLease exists again is kept, too.
func TestM7KeptFromTheDayItExistsAgain(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	fl := w.FencedLease("payments")
	w.Must(w.Admin.Delete(w.Ctx, fl))
	w.AwaitRetired("payments")
	w.Must(w.Admin.Create(w.Ctx, &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "payments"}}))
	suite.Refused(t, w.Admin.Delete(w.Ctx, w.Lease("payments")), 422, fence.ReasonFencedLeaseExists)
}

// A namespace that goes away takes all along, by the real namespace controller,
// with guarded objects in it whose finalizers come off late.
func TestM7NamespaceGoesAway(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	w.Guarded("account-99", "payments", 1)
	suite.Admitted(t, pod.Modify("account-99", suite.Token("1"), suite.Balance("1"), func(o client.Object) {
		o.SetFinalizers([]string{"example.com/audit"})
	}))

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	w.Must(w.Admin.Delete(w.Ctx, namespace))
	w.Eventually("the FencedLease and its Lease are gone", func() error {
		return errors.Join(
			gone(w.Admin.Get(w.Ctx, w.Key("payments"), &v1alpha1.FencedLease{})),
			gone(w.Admin.Get(w.Ctx, w.Key("payments"), &coordinationv1.Lease{})),
		)
	})
	w.Eventually("the guarded object waits for its finalizer", func() error {
		if w.GetConfigMap("account-99").DeletionTimestamp == nil {
			return errors.New("it is not in deletion")
		}
		return nil
	})

	// The controller whose finalizer it is knows nothing of tokens.
	suite.Admitted(t, w.Admin.Modify("account-99", func(o client.Object) { o.SetFinalizers(nil) }))
	w.Eventually("the namespace is gone", func() error {
		return gone(w.Admin.Get(w.Ctx, client.ObjectKeyFromObject(namespace), namespace))
	})
}

// An owner that goes away does not take the counter along: the garbage collector
// is refused like anyone.
func TestM7GarbageCollector(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	collector := w.As("system:serviceaccount:kube-system:generic-garbage-collector")
	suite.Refused(t, collector.Delete(w.Ctx, w.Lease("payments")), 422, fence.ReasonFencedLeaseExists, "delete the FencedLease first")
	unfenced := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "unfenced"}}
	w.Must(w.Admin.Create(w.Ctx, unfenced))
	suite.Admitted(t, collector.Delete(w.Ctx, unfenced))
}

func gone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return errors.New("it is still there")
	default:
		return err
	}
}

// In a namespace that is terminating, anybody may delete the Lease: whoever
// empties it by hand is not in the way of its end.
func TestM7AnyDeleteWhileTheNamespaceGoesAway(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	w.ChangeFencedLease("payments", func(fl *v1alpha1.FencedLease) { fl.Finalizers = []string{"example.com/keep"} })
	suite.Refused(t, w.Admin.Delete(w.Ctx, w.Lease("payments")), 422, fence.ReasonFencedLeaseExists)
	w.Must(w.Admin.Delete(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))

	err := w.Admin.Delete(w.Ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "payments"}})
	if !apierrors.IsNotFound(err) { // or the namespace controller was first
		suite.Admitted(t, err)
	}
	w.Eventually("the FencedLease takes its finalizer off", func() error {
		fl := w.GetFencedLease("payments")
		fl.Finalizers = nil
		return w.Admin.Update(w.Ctx, fl)
	})
	w.Eventually("the namespace is gone", func() error {
		return gone(w.Admin.Get(w.Ctx, client.ObjectKey{Name: w.Namespace}, &corev1.Namespace{}))
	})
}
