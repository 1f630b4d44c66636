package outage

import (
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// What the manager's metrics say of a short story, by the manager that saw it all.
func TestMetricsTellTheStory(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	before := metricsOf(w)
	began := time.Now()

	pod.Acquire("payments", "worker")
	w.Guarded("account-99", "payments", 1)
	suite.Admitted(t, pod.Modify("account-99", suite.Balance("1"), suite.Annotation(v1alpha1.AnnotationWrite, "1/a")))
	_, err := pod.Renew("payments") // asks no webhook
	suite.Admitted(t, err)
	pod.Acquire("payments", "next")
	suite.Admitted(t, pod.Modify("account-99", suite.Token("2"))) // seals
	suite.Refused(t, pod.Modify("account-99", suite.Token("1")), 412, fence.ReasonStale)
	dry := w.GetConfigMap("account-99")
	suite.Balance("2")(dry)
	suite.Annotation(v1alpha1.AnnotationWrite, "2/b")(dry)
	suite.Admitted(t, pod.Update(w.Ctx, dry, client.DryRunAll))

	after := metricsOf(w)
	for series, want := range map[string]float64{
		"fencedlease_mints_total":       2,
		"fencedlease_guard_seals_total": 1,
		"fencedlease_webhook_decisions_total decision=allow dry_run=false operation=UPDATE reason= webhook=mint":                    2,
		"fencedlease_webhook_decisions_total decision=allow dry_run=false operation=UPDATE reason= webhook=lease-check":             2,
		"fencedlease_webhook_decisions_total decision=allow dry_run=false operation=CREATE reason= webhook=guard":                   1,
		"fencedlease_webhook_decisions_total decision=allow dry_run=false operation=UPDATE reason= webhook=guard":                   2,
		"fencedlease_webhook_decisions_total decision=allow dry_run=true operation=UPDATE reason= webhook=guard":                    1,
		"fencedlease_webhook_decisions_total decision=refuse dry_run=false operation=UPDATE reason=FencingTokenStale webhook=guard": 1,
		"fencedlease_webhook_duration_seconds webhook=guard":                                                                        5,
	} {
		if got := after[series] - before[series]; got != want {
			t.Errorf("%s rose by %g, want %g", series, got, want)
		}
	}
	// How many depends on how fast the watches are: of each admitted write, one Lease.
	if got := after["fencedlease_live_reads_total kind=Lease"] - before["fencedlease_live_reads_total kind=Lease"]; got < 4 {
		t.Errorf("%g live reads of Leases, want 4 or more", got)
	}
	if got := after["fencedlease_live_reads_saved_total by=cache"] - before["fencedlease_live_reads_saved_total by=cache"]; got < 4 {
		t.Errorf("%g reads saved by the cache, want 4 or more", got)
	}
	if at := time.Unix(int64(after["fencedlease_last_mint_timestamp_seconds"]), 0); at.Before(began.Add(-time.Second)) || at.After(time.Now()) {
		t.Errorf("the last mint was at %s, and the story began at %s", at, began)
	}
	for series := range after {
		for _, name := range []string{"payments", "account-99", w.Namespace, "worker"} {
			if strings.Contains(series, name) {
				t.Errorf("a label names an object: %s", series)
			}
		}
	}
}

// metricsOf are our own metrics of the package's manager, by name and labels; of a
// histogram, the count.
func metricsOf(w *suite.World) map[string]float64 {
	w.T.Helper()
	families, err := suite.Manager.Metrics(w.Ctx)
	w.Must(err)
	series := map[string]float64{}
	for name, family := range families {
		if !strings.HasPrefix(name, "fencedlease_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			key := []string{name}
			for _, label := range metric.GetLabel() {
				key = append(key, label.GetName()+"="+label.GetValue())
			}
			series[strings.Join(key, " ")] = valueOf(metric)
		}
	}
	return series
}

func valueOf(metric *dto.Metric) float64 {
	switch {
	case metric.GetCounter() != nil:
		return metric.GetCounter().GetValue()
	case metric.GetGauge() != nil:
		return metric.GetGauge().GetValue()
	default:
		return float64(metric.GetHistogram().GetSampleCount())
	}
}
