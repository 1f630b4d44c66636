package blackhole

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// margin is what a busy machine may add to the timeout of a webhook.
const margin = 2 * time.Second

// TestGuardedWritesFailInTime, and name the webhook. Once the manager answers again,
// the same writes pass.
func TestGuardedWritesFailInTime(t *testing.T) {
	s := newStage(t)
	w := s.World
	writes := guardedWrites(w, s.pod)
	configurations := s.stopManager()
	h := openHole(w)
	sent := map[string]<-chan []outcome{}
	for name, secure := range map[string]bool{"silent": false, "silent after the handshake": true} {
		h.secure.Store(secure)
		before := h.fell.Load()
		sent[name] = sendAll(w, writes)
		w.Eventually("all wait in the hole", func() error {
			if fell := h.fell.Load() - before; fell != int64(len(writes)) {
				return fmt.Errorf("%d do", fell)
			}
			return nil
		})
	}
	for name, outcomes := range sent {
		for i, failed := range <-outcomes {
			write, timeout := writes[i], configurations.timeout(w, writes[i].webhook)
			t.Logf("%s: %s failed after %s: %v", name, write.name, failed.took.Round(time.Millisecond), failed.err)
			suite.Refused(t, failed.err, 500, "InternalError", `failed calling webhook "`+write.webhook+`"`, "context deadline exceeded")
			if failed.took > timeout+margin {
				t.Errorf("%s failed after %s, but the timeout of %s is %s", write.name, failed.took, write.webhook, timeout)
			}
		}
	}

	h.close()
	w.Must(suite.Manager.Restart(w.Ctx))
	for i, passed := range <-sendAll(w, writes) {
		if passed.err != nil {
			t.Errorf("%s, once the manager answers: %v", writes[i].name, passed.err)
		}
	}
}

// outcome is that of one write.
type outcome struct {
	err  error
	took time.Duration
}

// sendAll sends all the writes at once. What became of them follows, in their order.
func sendAll(w *suite.World, writes []guardedWrite) <-chan []outcome {
	outcomes := make([]outcome, len(writes))
	var waiting sync.WaitGroup
	for i, write := range writes {
		waiting.Go(func() {
			begin := time.Now()
			err := write.send(w.Ctx)
			outcomes[i] = outcome{err, time.Since(begin)}
		})
	}
	all := make(chan []outcome, 1)
	go func() {
		waiting.Wait()
		all <- outcomes
	}()
	return all
}

// guardedWrite is one that a webhook has to admit.
type guardedWrite struct {
	kind

	webhook string
}

// guardedWrites are all admitted if the webhooks answer. Nobody wrote these objects a
// moment ago, so the API server has them as they are and asks the webhook only once.
func guardedWrites(w *suite.World, pod *suite.Actor) []guardedWrite {
	w.T.Helper()
	for _, name := range []string{"written", "claimed", "deleted"} {
		w.Guarded(name, "payments", 1)
	}
	serveLedgers(w)
	w.Must(pod.Create(w.Ctx, ledger(w, "books")))
	w.FencedLease("free")
	presents := w.Admin.WithClaim("1")
	first := suite.Annotation(v1alpha1.AnnotationWrite, "1/first")
	return []guardedWrite{
		{kind{"a guarded ConfigMap", func(context.Context) error {
			return pod.Modify("written", suite.Balance("1"), first)
		}}, "guard.fencedlease.io"},
		{kind{"a guarded custom resource", func(ctx context.Context) error {
			books := ledger(w, "books")
			if err := pod.Get(ctx, w.Key("books"), books); err != nil {
				return err
			}
			first(books)
			books.Object["balance"] = "1"
			return pod.Update(ctx, books)
		}}, "guard.fencedlease.io"},
		{kind{"the deletion of a guarded ConfigMap", func(ctx context.Context) error {
			return presents.Delete(ctx, w.ConfigMap("deleted"))
		}}, "guard.fencedlease.io"},
		{kind{"a claim in the user extra", func(context.Context) error {
			return presents.Modify("claimed", suite.Balance("1"))
		}}, "stamp.fencedlease.io"},
		{kind{"the acquisition of a fenced Lease", func(context.Context) error {
			_, err := pod.TryAcquire("free", "holder")
			return err
		}}, "mint.fencedlease.io"},
	}
}
