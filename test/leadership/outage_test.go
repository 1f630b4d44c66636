package leadership

import (
	"runtime"
	"testing"
	"time"

	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestAPIServerAway: a leader that cannot reach the API server stops before anybody
// else may take its Lease. Expired is not superseded: if nobody did, it goes on with
// the token that it had.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	deadline := 2 * time.Second
	prepare := func(t *testing.T) (*suite.World, *suite.Way, *candidate, tenure) {
		t.Helper()
		w := fenced(t)
		guarded(w, account)
		way := w.Way()
		pod := w.Pod("first")
		pod.Config = way.Of(pod.Config)
		first := stand(w, pod, func(o *leader.Options) { o.RenewDeadline = deadline })
		held := first.lead(1)
		suite.Admitted(t, pay(held.ctx, first.typed(), w.Namespace, "1"))
		return w, way, first, held
	}
	t.Run("and nobody takes over", func(t *testing.T) {
		t.Parallel()
		w, way, first, held := prepare(t)
		way.Cut()
		held.lost(t, leader.ErrUnproven, deadline+slack)
		// Not before its time: it goes on for as long as the last renewal is good for.
		if early := time.Until(w.Lease(leaseName).Spec.RenewTime.Add(deadline)); early > 0 {
			t.Errorf("the term was over %s before its deadline", early)
		}
		if err := pay(held.ctx, first.typed(), w.Namespace, "2"); !isFenced(held.ctx, err) {
			t.Errorf("a write after the term returned %v", err)
		}
		way.Mend()
		again := first.lead(1)
		if again.Term == held.Term {
			t.Error("a term came back that was over")
		}
		suite.Admitted(t, pay(again.ctx, first.typed(), w.Namespace, "3"))
		stands(w, "3", "1")
	})
	t.Run("and another takes over", func(t *testing.T) {
		t.Parallel()
		w, way, first, held := prepare(t)
		way.Cut()
		held.lost(t, leader.ErrUnproven, deadline+slack)
		second := w.Pod("second")
		second.Acquire(leaseName, "second")
		second.Release(leaseName)
		way.Mend()
		again := first.lead(3)
		suite.Admitted(t, pay(again.ctx, first.typed(), w.Namespace, "3"))
		stands(w, "3", "3")
	})
	t.Run("for less than the deadline", func(t *testing.T) {
		t.Parallel()
		w := fenced(t)
		guarded(w, account)
		way := w.Way()
		pod := w.Pod("first")
		pod.Config = way.Of(pod.Config)
		first := stand(w, pod)
		held := first.lead(1)
		way.Cut()
		w.Eventually("a write fails on its way", func() error {
			if err := pay(held.ctx, first.typed(), w.Namespace, "1"); err == nil {
				return errDone
			}
			return nil
		})
		time.Sleep(3 * retryPeriod)
		way.Mend()
		suite.Admitted(t, pay(held.ctx, first.typed(), w.Namespace, "2"))
		time.Sleep(3 * retryPeriod)
		held.lives(t)
		stands(w, "2", "1")
	})
}

// TestFenceAway: while the operator is stopped a leader keeps its Lease, and a write
// waits until it is back. Not at the same time as other tests, which need it.
func TestFenceAway(t *testing.T) {
	w := fenced(t)
	guarded(w, account)
	first := stand(w, w.Pod("first"))
	held := first.lead(1)
	client := first.typed()
	suite.Admitted(t, pay(held.ctx, client, w.Namespace, "1"))

	w.Must(suite.Manager.Stop(w.Ctx))
	err := pay(held.ctx, client, w.Namespace, "2")
	w.Must(suite.Manager.Restart(w.Ctx))
	if err == nil {
		t.Error("a guarded write was stored without its guard")
	}
	suite.Admitted(t, pay(held.ctx, client, w.Namespace, "3"))
	held.lives(t)
	stands(w, "3", "1")
}

// TestFenceUnavailable: while the operator cannot reach the API server it answers
// 503, and client-go tries again until it can.
func TestFenceUnavailable(t *testing.T) {
	w := fenced(t)
	guarded(w, account)
	first := stand(w, w.Pod("first"))
	held := first.lead(1)
	client := first.typed()
	suite.Admitted(t, pay(held.ctx, client, w.Namespace, "1"))

	way := w.Way()
	throughWay(w, way)
	suite.Admitted(t, pay(held.ctx, client, w.Namespace, "2"))
	way.Cut()
	mended := time.AfterFunc(1500*time.Millisecond, way.Mend)
	defer mended.Stop()
	began := time.Now()
	suite.Admitted(t, pay(held.ctx, client, w.Namespace, "3"))
	if took := time.Since(began); took < time.Second {
		t.Errorf("the write took %s only: the fence was not away", took)
	}
	held.lives(t)
	stands(w, "3", "1")
}

// TestNothingIsLeftRunning: an election whose Run has returned has left no goroutine
// behind. Not at the same time as other tests, whose goroutines come and go.
func TestNothingIsLeftRunning(t *testing.T) {
	w := fenced(t)
	guarded(w, account)
	pod := w.Pod("first")
	options := leader.Options{Namespace: w.Namespace, Name: leaseName, Identity: "first", RetryPeriod: retryPeriod}
	election, err := leader.New(pod.Config, options)
	w.Must(err)
	run := func() { runOnce(w, election, pod) }
	run() // it opens the connections that it keeps
	before := runtime.NumGoroutine()
	for range 10 {
		run()
	}
	w.Eventually("no goroutine is left", func() error {
		if now := runtime.NumGoroutine(); now > before {
			return differ(now, before)
		}
		return nil
	})
}
