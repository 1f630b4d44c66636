package suite

import (
	"fmt"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/fence"
)

// Calls is how many requests the manager's webhook at that path has answered, in
// all tests of the package: count only where no other test runs.
func (w *World) Calls(path string) int {
	w.T.Helper()
	families, err := Manager.Metrics(w.Ctx)
	w.Must(err)
	total := 0.0
	for _, metric := range families["controller_runtime_webhook_requests_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "webhook" && label.GetValue() == path {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}

// Events are those about a FencedLease, as "reason: note".
func (w *World) Events(fencedLease string) []string {
	w.T.Helper()
	var list eventsv1.EventList
	w.Must(w.Admin.List(w.Ctx, &list, client.InNamespace(w.Namespace)))
	var events []string
	for i := range list.Items {
		event := &list.Items[i]
		if event.Regarding.Kind == "FencedLease" && event.Regarding.Name == fencedLease {
			events = append(events, event.Reason+": "+event.Note)
		}
	}
	return events
}

// AwaitEvent waits for an Event about a FencedLease whose note has all the parts.
func (w *World) AwaitEvent(fencedLease, reason string, parts ...string) {
	w.T.Helper()
	w.Eventually(fmt.Sprintf("Event %s of FencedLease %s with %q", reason, fencedLease, parts), func() error {
		events := w.Events(fencedLease)
		for _, event := range events {
			if strings.HasPrefix(event, reason+": ") && containsAll(event, parts) {
				return nil
			}
		}
		return fmt.Errorf("there are %q", events)
	})
}

// AwaitKeys waits until our keys on a Lease are as wanted.
func (w *World) AwaitKeys(lease, what string, want func(fence.Keys) bool) {
	w.T.Helper()
	w.Eventually("Lease "+lease+" "+what, func() error {
		if got := Keys(w.Lease(lease)); !want(got) {
			return fmt.Errorf("its keys are %+v", got)
		}
		return nil
	})
}

// AwaitRetired waits until a Lease is retired.
func (w *World) AwaitRetired(lease string) {
	w.T.Helper()
	w.AwaitKeys(lease, "is retired", fence.Keys.IsRetired)
}

func containsAll(s string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}
