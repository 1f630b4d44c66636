package protocol

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/suite"
)

// eventsOf are the Events of the test's namespace.
func eventsOf(w *suite.World) []eventsv1.Event {
	w.T.Helper()
	list := &eventsv1.EventList{}
	w.Must(w.Admin.List(w.Ctx, list, client.InNamespace(w.Namespace)))
	return list.Items
}

// awaitEvent makes writes until there is an Event of that reason about an object:
// Events are bounded in rate, all tests together.
func awaitEvent(w *suite.World, reason, name string, again func(try string) error) eventsv1.Event {
	w.T.Helper()
	var found eventsv1.Event
	try := 0
	w.Eventually("Event "+reason+" about "+name, func() error {
		try++
		w.Must(again(strconv.Itoa(try)))
		for _, event := range eventsOf(w) {
			if event.Reason == reason && event.Regarding.Name == name {
				found = event
				return nil
			}
		}
		return fmt.Errorf("not after %d writes", try)
	})
	return found
}

func wantNote(t *testing.T, event eventsv1.Event, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(event.Note, part) {
			t.Errorf("the note lacks %q: %s", part, event.Note)
		}
	}
}

func wantNoNote(t *testing.T, event eventsv1.Event, part string) {
	t.Helper()
	if strings.Contains(event.Note, part) {
		t.Errorf("the note has %q: %s", part, event.Note)
	}
}

// unclaimed is the count of updates without a claim (G7), over all tests, that
// were admitted in that way.
func unclaimed(w *suite.World, admitted, dryRun string) float64 {
	w.T.Helper()
	families, err := suite.Manager.Metrics(w.Ctx)
	w.Must(err)
	total := 0.0
	for _, metric := range families["fencedlease_guard_verdicts_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["operation"] == "UPDATE" && labels["row"] == "G7" && labels["admitted"] == admitted && labels["dry_run"] == dryRun {
			total += metric.GetCounter().GetValue()
		}
	}
	return total
}
