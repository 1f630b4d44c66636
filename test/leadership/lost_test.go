package leadership

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/test/suite"
)

const (
	mergePatch      = types.MergePatchType
	annotationToken = v1alpha1.AnnotationToken
)

// TestTheEndOfATerm: each way to lose a Lease ends the work within a renewal, with
// the reason, and no write is stored after it.
func TestTheEndOfATerm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		happens func(*suite.World)
		why     error
		next    fence.Token // of the next term of the same candidate
	}{
		"somebody takes the Lease": {
			func(w *suite.World) { w.Pod("second").Acquire(leaseName, "second") }, leader.ErrSuperseded, 0,
		},
		"somebody releases it":             {func(w *suite.World) { w.Admin.Release(leaseName) }, leader.ErrTakenAway, 2},
		"somebody deletes its FencedLease": {func(w *suite.World) { w.Must(w.Admin.Delete(w.Ctx, w.GetFencedLease(leaseName))) }, leader.ErrUnfenced, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fenced(t)
			guarded(w, account)
			first := stand(w, w.Pod("first"))
			client := first.typed()
			held := first.lead(1)
			suite.Admitted(t, pay(held.ctx, client, w.Namespace, "1"))

			tc.happens(w)
			// A renewal, and the controller's part where the FencedLease is deleted.
			lost := held.lost(t, tc.why, retryPeriod+slack)
			if lost.Token != 1 || lost.Lease != w.Namespace+"/"+leaseName {
				t.Errorf("the reason is %+v", lost)
			}
			if errors.Is(tc.why, leader.ErrSuperseded) && (lost.Current != 2 || lost.Holder != "second") {
				t.Errorf("the reason does not name who has the Lease: %+v", lost)
			}
			if err := pay(held.ctx, client, w.Namespace, "2"); !isFenced(held.ctx, err) {
				t.Errorf("a write after the term returned %v", err)
			}
			stands(w, "1", "1")
			if tc.next != fence.None {
				again := first.lead(tc.next)
				suite.Admitted(t, pay(again.ctx, client, w.Namespace, "3"))
				stands(w, "3", tc.next.String())
			}
		})
	}
	t.Run("nothing happens", func(t *testing.T) { // the twin
		t.Parallel()
		w := fenced(t)
		guarded(w, account)
		first := stand(w, w.Pod("first"))
		client := first.typed()
		held := first.lead(1)
		for end := time.Now().Add(retryPeriod + slack); time.Now().Before(end); time.Sleep(retryPeriod / 2) {
			suite.Admitted(t, pay(held.ctx, client, w.Namespace, "1"))
		}
		held.lives(t)
	})
}

// TestRefusalEndsTheTerm: the answer to a write shows who leads by now, and ends the
// work before a renewal does.
func TestRefusalEndsTheTerm(t *testing.T) {
	t.Parallel()
	w := fenced(t)
	guarded(w, account)
	first := stand(w, w.Pod("first"), func(o *leader.Options) { o.RetryPeriod = 8 * time.Second })
	client := first.typed()
	held := first.lead(1)
	suite.Admitted(t, pay(held.ctx, client, w.Namespace, "1"))
	w.Pod("second").Acquire(leaseName, "second")

	held.lives(t) // it does not know
	err := pay(held.ctx, client, w.Namespace, "2")
	refusal, ok := leader.RefusalOf(err)
	if !ok || !leader.IsFenced(err) || refusal.Facts.Current != 2 || refusal.Facts.Holder != "second" {
		t.Fatalf("the write returned %v (%+v)", err, refusal)
	}
	suite.Refused(t, err, 412, fence.ReasonStale, "second")
	if !errors.Is(held.Err(), leader.ErrSuperseded) {
		t.Errorf("after the refusal the term says %v", held.Err())
	}
	held.lost(t, leader.ErrSuperseded, time.Second)
	stands(w, "1", "1")
}

// TestGoodOrder: the term goes on until the work has ended; then the Lease is free.
func TestGoodOrder(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*candidate, tenure){
		"the work returns": func(_ *candidate, h tenure) { h.finish <- errDone },
		"the candidate is told to end": func(c *candidate, _ tenure) {
			c.leave()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fenced(t)
			guarded(w, account)
			first := stand(w, w.Pod("first"))
			held := first.lead(1)
			suite.Admitted(t, pay(held.ctx, first.typed(), w.Namespace, "1"))
			second := stand(w, w.Pod("second"))
			end(first, held)
			<-first.done
			if !errors.Is(held.Err(), leader.ErrReleased) {
				t.Errorf("the term ended with %v", held.Err())
			}
			if name == "the work returns" != errors.Is(first.err, errDone) {
				t.Errorf("Run returned %v", first.err)
			}
			began := time.Now()
			second.lead(2)
			if took := time.Since(began); took > leader.DefaultLeaseDuration/2 {
				t.Errorf("the next candidate waited for %s: the Lease was not released", took)
			}
		})
	}
}

var errDone = errors.New("done")
