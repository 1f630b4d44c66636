package leadership

import (
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/fencedlease/fencedlease/test/suite"
)

// record is all that was committed to the objects of a resource in a namespace, as
// one watch tells it: each revision, in order.
type record struct {
	w       *suite.World
	objects dynamic.ResourceInterface

	mu     sync.Mutex
	events []watch.Event
	broken error
}

// recordOf starts a record. Objects that exist are its first events.
func recordOf(w *suite.World, resource schema.GroupVersionResource) *record {
	w.T.Helper()
	all, err := dynamic.NewForConfig(w.Admin.Config)
	w.Must(err)
	r := &record{w: w, objects: all.Resource(resource).Namespace(w.Namespace)}
	list, err := r.objects.List(w.Ctx, metav1.ListOptions{})
	w.Must(err)
	for i := range list.Items {
		r.add(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	events, err := r.objects.Watch(w.Ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	w.Must(err)
	w.T.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			r.add(event)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.broken = errors.New("the watch ended")
	}()
	return r
}

func (r *record) add(event watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

// revision is one state of an object; the last may be that it was deleted.
type revision struct {
	*unstructured.Unstructured

	event watch.EventType
}

// complete waits until the record has what is stored now, and returns it.
func (r *record) complete() []revision {
	r.w.T.Helper()
	list, err := r.objects.List(r.w.Ctx, metav1.ListOptions{})
	r.w.Must(err)
	var all []revision
	r.w.Eventually("the watch has the last revision of everything", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.broken != nil {
			return r.broken
		}
		all = all[:0]
		seen := map[string]bool{}
		for _, event := range r.events {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error || event.Type == watch.Bookmark {
				return fmt.Errorf("the watch says %s: %v", event.Type, event.Object)
			}
			seen[object.GetResourceVersion()] = true
			all = append(all, revision{object, event.Type})
		}
		for i := range list.Items {
			if !seen[list.Items[i].GetResourceVersion()] {
				return fmt.Errorf("revision %s of %s is missing", list.Items[i].GetResourceVersion(), list.Items[i].GetName())
			}
		}
		return nil
	})
	return all
}

// text is a string at a path of an object, "" where there is none.
func text(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}
