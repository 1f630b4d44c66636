package load

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fencedlease/fencedlease/test/suite"
)

// history is all that was committed to one object, as one watch tells it: it
// gets every revision, in order.
type history[T interface {
	runtime.Object
	metav1.Object
}] struct {
	mu        sync.Mutex
	revisions []T
	broken    error
}

// watcher is a typed client of one kind and namespace.
type watcher interface {
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// record starts a history with the revision that follows since.
func (h *history[T]) record(w *suite.World, from watcher, since T) {
	w.T.Helper()
	events, err := from.Watch(w.Ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, since.GetName()).String(),
		ResourceVersion: since.GetResourceVersion(),
	})
	w.Must(err)
	w.T.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			h.add(event)
		}
		h.breakOff(errors.New("the watch ended"))
	}()
}

func (h *history[T]) add(event watch.Event) {
	object, ok := event.Object.(T)
	if !ok || event.Type != watch.Modified {
		h.breakOff(fmt.Errorf("the watch says %s: %v", event.Type, event.Object))
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revisions = append(h.revisions, object)
}

func (h *history[T]) breakOff(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil {
		h.broken = err
	}
}

// until waits for the revision of last, and returns the revisions up to it.
func (h *history[T]) until(w *suite.World, last T) []T {
	w.T.Helper()
	w.Eventually("the watch has revision "+last.GetResourceVersion(), func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.broken != nil {
			return h.broken
		}
		if n := len(h.revisions); n == 0 || h.revisions[n-1].GetResourceVersion() != last.GetResourceVersion() {
			return fmt.Errorf("it has %d revisions", n)
		}
		return nil
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revisions
}
