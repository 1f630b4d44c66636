package leadership

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// throughWay runs another manager in place of that of the package, which reaches the
// API server by a way that can be cut, until the end of the test.
func throughWay(w *suite.World, way *suite.Way) {
	w.T.Helper()
	w.Must(suite.Manager.Stop(w.Ctx))
	manager, err := suite.Cluster.StartManager(w.Ctx, cluster.ManagerOptions{
		APIServer: way.URL,
		ExtraArgs: []string{"--leader-elect=false"}, // a leader that loses its way ends itself
	})
	w.T.Cleanup(func() { w.Must(suite.Manager.Restart(w.Ctx)) })
	w.Must(err)
	w.T.Cleanup(func() { w.Must(manager.Stop(w.Ctx)) })
}

// runOnce leads once, writes, and ends.
func runOnce(w *suite.World, election *leader.Election, pod *suite.Actor) {
	w.T.Helper()
	client, err := kubernetes.NewForConfig(election.Config(pod.Config))
	w.Must(err)
	ctx, cancel := context.WithCancel(klog.NewContext(w.Ctx, logr.Discard()))
	defer cancel()
	w.Must(election.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		return pay(ctx, client, w.Namespace, "1")
	}))
}

// TestRenewalsAreNotStarved: a controller that uses up its whole rate, and has more
// to write than it may, does not lose its Lease for it.
func TestRenewalsAreNotStarved(t *testing.T) {
	t.Parallel()
	w := fenced(t)
	guarded(w, account)
	pod := w.Pod("first")
	pod.Config.QPS, pod.Config.Burst = 1, 1
	first := stand(w, pod, func(o *leader.Options) {
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = shortLease, shortDeadline, shortRetry
	})
	client := first.typed()
	held := first.lead(1)

	const several = 4
	var written atomic.Int64
	var busy sync.WaitGroup
	ctx, stop := context.WithTimeout(held.ctx, several*shortLease)
	defer stop()
	for range 8 {
		busy.Go(func() {
			for ctx.Err() == nil {
				if err := pay(ctx, client, w.Namespace, "1"); err == nil {
					written.Add(1)
				}
			}
		})
	}
	busy.Wait()
	held.lives(t)
	if n := written.Load(); n == 0 || n > 2*int64(several*shortLease/time.Second) {
		t.Errorf("%d writes: the client was not throttled", n)
	}
}

// TestTwoElections: two candidates in one process, each with a Lease of its own, do
// not mistake each other's terms for theirs.
func TestTwoElections(t *testing.T) {
	t.Parallel()
	w := fenced(t)
	w.FencedLease("refunds")
	guarded(w, account)
	refund := w.ConfigMap("refund", suite.GuardedBy("refunds"))
	w.Must(w.Admin.Create(w.Ctx, refund))
	pod := w.Pod("first")
	for range 3 { // so that their tokens differ
		pod.Acquire("refunds", "somebody")
		pod.Release("refunds")
	}
	payments := stand(w, pod)
	refunds := stand(w, pod, func(o *leader.Options) { o.Name = "refunds" })
	paying, refunding := payments.lead(1), refunds.lead(4)

	suite.Admitted(t, pay(paying.ctx, payments.typed(), w.Namespace, "1"))
	stands(w, "1", "1")
	suite.Admitted(t, payTo(refunding.ctx, refunds.typed(), w.Namespace, "refund", "1"))
	if got := w.GetConfigMap("refund").Annotations[annotationToken]; got != "4" {
		t.Errorf("the refund has mark %q, want 4", got)
	}
	if err := pay(refunding.ctx, payments.typed(), w.Namespace, "2"); !isNoTerm(err) {
		t.Errorf("a write of one election in a term of the other returned %v", err)
	}
	if err := pay(w.Ctx, payments.typed(), w.Namespace, "2"); !isNoTerm(err) {
		t.Errorf("a write in no term returned %v", err)
	}
	stands(w, "1", "1")
	// Unfenced clients of the same process are none of its business.
	unfenced, err := kubernetes.NewForConfig(rest.CopyConfig(pod.Config))
	w.Must(err)
	w.Must(w.Admin.Create(w.Ctx, w.ConfigMap("free")))
	suite.Admitted(t, payTo(w.Ctx, unfenced, w.Namespace, "free", "1"))
}
