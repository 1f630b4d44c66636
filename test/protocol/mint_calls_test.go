package protocol

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// These tests count all calls of the manager's webhooks, so none of them runs
// beside another test.

const (
	pathMint  = "/mint"
	pathCheck = "/lease-check"
)

// calls is how many times both webhooks on Leases are called meanwhile.
func calls(w *suite.World, meanwhile func()) (mint, check int) {
	w.T.Helper()
	mint, check = w.Calls(pathMint), w.Calls(pathCheck)
	meanwhile()
	return w.Calls(pathMint) - mint, w.Calls(pathCheck) - check
}

const (
	renewals = 20

	// The operator may still be at work for a test before this one, so a count
	// is taken again, a few times, if it is not as wanted. Calls for renewals
	// would be counted each time.
	counts = 5
)

// wantNoCalls checks that no webhook is called for what is done.
func wantNoCalls(w *suite.World, what string, do func()) {
	w.T.Helper()
	var mint, check int
	for range counts {
		if mint, check = calls(w, do); mint == 0 && check == 0 {
			return
		}
	}
	w.T.Errorf("%s: mint was called %d times and its check %d times, want none", what, mint, check)
}

// wantOneCall checks that both webhooks are called once for what is done.
func wantOneCall(w *suite.World, what string, do func()) {
	w.T.Helper()
	var mint, check int
	for range counts {
		if mint, check = calls(w, do); mint == 1 && check == 1 {
			return
		}
	}
	w.T.Errorf("%s: mint was called %d times and its check %d times, want one each", what, mint, check)
}

// renewOften renews as a client does that keeps the Lease of its last response.
func renewOften(w *suite.World, by *suite.Actor, name string) {
	w.T.Helper()
	lease := w.Lease(name)
	for range renewals {
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		suite.Admitted(w.T, by.Update(w.Ctx, lease))
	}
}

// A plain renewal never waits for a webhook, whoever the holder is; an
// acquisition does, once.
func TestM6RenewalsCallNothing(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	for _, actor := range []*suite.Actor{w.Pod("worker"), w.User("scheduler"), w.ServiceAccount("plain"), w.Admin} {
		wantOneCall(w, actor.Name+" acquires", func() { actor.Acquire("payments", actor.Name) })
		wantNoCalls(w, actor.Name+" renews", func() { renewOften(w, actor, "payments") })
		wantKeys(t, actor.Name+" in the end", w.Lease("payments"),
			held("payments", suite.Keys(w.Lease("payments")).Token, actor.Name, actor.Identity()))
		wantNoCalls(w, actor.Name+" changes what is not ours", func() {
			_, err := actor.WriteLease("payments", func(l *coordinationv1.Lease) {
				now := metav1.NowMicro().String()
				l.Labels["at"] = now[:10]
				l.Annotations["at"] = now
			})
			suite.Admitted(t, err)
		})
		wantNoCalls(w, actor.Name+" releases", func() { actor.Release("payments") })
	}
}

// What is recorded is recorded once: a new certificate, or a holder for whom the
// API server acquired, costs one call and then none.
func TestM6RecordedOnce(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	user, pod := w.User("scheduler"), w.Pod("worker")
	user.Acquire("payments", "scheduler")
	rotated := user
	wantOneCall(w, "a new certificate renews", func() {
		rotated = user.Rotated()
		_, err := rotated.Renew("payments")
		suite.Admitted(t, err)
	})
	wantNoCalls(w, "and renews on", func() { renewOften(w, rotated, "payments") })

	var mint, check int
	for range counts {
		w.APIServer().Acquire("payments", "worker")
		mint, check = calls(w, func() {
			_, err := pod.Renew("payments")
			suite.Admitted(t, err)
		})
		if mint == 1 && check == 1 {
			break
		}
	}
	if mint != 1 || check != 1 {
		t.Errorf("a holder is recorded: mint was called %d times and its check %d times, want one each", mint, check)
	}
	wantNoCalls(w, "and renews on", func() { renewOften(w, pod, "payments") })
}

// A client that applies renews for nothing, too.
func TestM6RenewalsByApply(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	acquired := metav1.NowMicro()
	apply := func(transitions int32) {
		t.Helper()
		now := metav1.NowMicro()
		config := coordinationapply.Lease("payments", w.Namespace).WithSpec(coordinationapply.LeaseSpec().
			WithHolderIdentity("worker").WithRenewTime(now).WithAcquireTime(acquired).WithLeaseTransitions(transitions))
		suite.Admitted(t, pod.Apply(w.Ctx, config, client.FieldOwner("worker"), client.ForceOwnership))
	}
	transitions := int32(0)
	wantOneCall(w, "acquired by apply", func() { transitions++; apply(transitions) })
	wantNoCalls(w, "renewed by apply", func() {
		for range renewals {
			apply(transitions)
		}
	})
}

// A Lease that nobody fenced is never seen, from its creation to its deletion.
func TestM6UnfencedLeases(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	wantNoCalls(w, "the life of an unfenced Lease", func() {
		heldLease(w, pod, "other", "first")
		pod.Acquire("other", "second")
		renewOften(w, pod, "other")
		pod.Release("other")
		suite.Admitted(t, pod.Delete(w.Ctx, w.Lease("other")))
	})

	// The heartbeats of nodes neither, whatever somebody wrote on them.
	nodes := w.Elsewhere(corev1.NamespaceNodeLease)
	wantNoCalls(w, "a heartbeat with our label", func() {
		lease := &coordinationv1.Lease{}
		lease.Namespace, lease.Name = corev1.NamespaceNodeLease, w.Namespace
		lease.Labels = map[string]string{v1alpha1.LabelFencedBy: "payments"}
		suite.Take(lease, "node")
		suite.Admitted(t, nodes.Admin.Create(w.Ctx, lease))
		renewOften(nodes, nodes.Admin, lease.Name)
		suite.Admitted(t, nodes.Admin.Delete(w.Ctx, lease))
	})
}

// Once its FencedLease is gone, a Lease is renewed as if it had never been.
func TestM6RetiredRenewals(t *testing.T) {
	w := suite.New(t)
	fl := w.FencedLease("payments")
	pod, other := w.Pod("worker"), w.Pod("other")
	pod.Acquire("payments", "worker")
	w.Must(w.Admin.Delete(w.Ctx, fl))
	w.AwaitRetired("payments")

	wantNoCalls(w, "renewals of a retired Lease", func() { renewOften(w, pod, "payments") })
	wantNoCalls(w, "its renewals by another Pod", func() { renewOften(w, other, "payments") })
	wantOneCall(w, "its acquisition", func() { other.Acquire("payments", "other") })
	wantNoCalls(w, "renewals after that", func() { renewOften(w, other, "payments") })
}
