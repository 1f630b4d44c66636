package protocol

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// heldLease creates a Lease that nobody fenced yet, in somebody's hands.
func heldLease(w *suite.World, by *suite.Actor, name, holder string) {
	w.T.Helper()
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = w.Namespace, name
	suite.Take(lease, holder)
	w.Must(by.Create(w.Ctx, lease))
}

// Whoever acquires gets holder, token and identity in that one write.
func TestM3TheWriterIsRecorded(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	for token, actor := range []*suite.Actor{w.Pod("worker"), w.User("scheduler"), w.ServiceAccount("plain"), w.Admin} {
		lease, err := actor.TryAcquire("payments", actor.Name)
		suite.Admitted(t, err)
		wantKeys(t, actor.Name, lease, held("payments", fence.Token(token+1).String(), actor.Name, actor.Identity()))
	}
}

// A holder that the operator finds gets its token at once, and is known by its
// next renewal, in the same term.
func TestM3AdoptionOfAHeldLease(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	pod, user := w.Pod("worker"), w.User("scheduler")
	for name, holder := range map[string]*suite.Actor{"payments": pod, "invoices": user, "refunds": w.ServiceAccount("plain")} {
		heldLease(w, holder, name, "holder")
		w.FencedLease(name)
		wantKeys(t, name+" once fenced", w.Lease(name), held(name, "1", "holder", ""))
		w.AwaitCondition(name, v1alpha1.ConditionHeld, "True", v1alpha1.ReasonHeld)
		if got := w.GetFencedLease(name).Status; got.Token != 1 || got.Holder != (v1alpha1.Holder{Identity: "holder"}) {
			t.Errorf("status %+v", got)
		}

		lease, err := holder.Renew(name)
		suite.Admitted(t, err)
		wantKeys(t, name+" once renewed", lease, held(name, "1", "holder", holder.Identity()))
		w.Eventually("the status names the writer", func() error {
			return differ(w.GetFencedLease(name).Status.Holder.Writer, string(holder.Identity()))
		})
	}
}

// The API server acquires for others, in coordinated leader election: the writer
// is not the holder.
func TestM3AcquiredByTheAPIServer(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	lease, err := w.APIServer().TryAcquire("payments", "worker")
	suite.Admitted(t, err)
	wantKeys(t, "acquired", lease, held("payments", "1", "worker", ""))

	lease, err = pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed by the holder", lease, held("payments", "1", "worker", pod.Identity()))

	// What the API server writes later does not hide the holder again.
	lease, err = w.APIServer().Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed by the API server", lease, held("payments", "1", "worker", pod.Identity()))
}

// The real thing: a candidate that does not write the Lease until it has it.
func TestM3CoordinatedLeaderElection(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	now := metav1.NowMicro()
	w.Must(pod.Create(w.Ctx, &coordinationv1beta1.LeaseCandidate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "worker"},
		Spec: coordinationv1beta1.LeaseCandidateSpec{
			LeaseName: "payments", BinaryVersion: "1.37.0", EmulationVersion: "1.37.0",
			Strategy: coordinationv1.OldestEmulationVersion, RenewTime: &now,
		},
	}))
	w.AwaitKeys("payments", "was acquired", func(k fence.Keys) bool { return k.TokenFor == "worker" })
	acquired := w.Lease("payments")
	wantKeys(t, "acquired by the API server", acquired, held("payments", suite.Keys(acquired).Token, "worker", ""))
	if acquired.Spec.Strategy == nil || *acquired.Spec.Strategy != coordinationv1.OldestEmulationVersion {
		t.Errorf("strategy %v: it was lost", acquired.Spec.Strategy)
	}

	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed by the holder", lease, held("payments", suite.Keys(acquired).Token, "worker", pod.Identity()))
}
