package webhooks

import (
	"context"
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// Values of labels. No label names an object: their number has no bound.
const (
	decidedAllow  = "allow"
	decidedRefuse = "refuse"

	// reasonMalformed stands for reviews that make no sense.
	reasonMalformed = "Malformed"

	savedByCoalescing = "coalescing"
	savedByCache      = "cache"
)

// durationBuckets are steps of 1 ms to 10 ms and of 10 ms to 100 ms, where a verdict
// belongs, and few up to the timeout.
var durationBuckets = []float64{
	.001, .002, .003, .004, .005, .006, .007, .008, .009,
	.01, .02, .03, .04, .05, .06, .07, .08, .09,
	.1, .25, .5, 1, 2, 3, 4, 5,
}

var (
	callDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "fencedlease_webhook_duration_seconds",
		Help:    "How long a call of a webhook took, from its arrival to its answer.",
		Buckets: durationBuckets,
	}, []string{"webhook"})

	// decisions counts answers, not writes: the API server may ask several times for
	// one write.
	decisions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fencedlease_webhook_decisions_total",
		Help: "Answers of a webhook, by the operation, the decision (allow or refuse), and the reason of the refusal (empty if allowed; Malformed for a review that makes no sense).",
	}, []string{"webhook", "operation", "decision", "reason", "dry_run"})

	verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fencedlease_guard_verdicts_total",
		Help: "Verdicts on writes to guarded objects, by the row of the verdict table that decided, the reason of the refusal (empty if admitted), and how the write was admitted (yes, no, warn or bypass).",
	}, []string{"operation", "row", "reason", "admitted", "dry_run"})

	mints = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "fencedlease_mints_total",
		Help: "Writes of fenced Leases that passed with a new token: each begins a term. One that loses a race at the very end is counted, too.",
	})

	lastMint = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fencedlease_last_mint_timestamp_seconds",
		Help: "When this replica last let a new token pass, in seconds since 1970; 0 if never.",
	})

	seals = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "fencedlease_guard_seals_total",
		Help: "Writes that were admitted and changed nothing of a guarded object but its token.",
	})

	certificateEnd = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fencedlease_webhook_certificate_expiry_timestamp_seconds",
		Help: "When the certificate ends that this replica serves, in seconds since 1970; 0 before the first connection.",
	})

	liveReads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fencedlease_live_reads_total",
		Help: "Reads that the webhooks made of the API server, by kind.",
	}, []string{"kind"})

	savedReads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fencedlease_live_reads_saved_total",
		Help: "Reads of the API server that the webhooks did without, because requests shared one (coalescing) or a watch knew enough (cache).",
	}, []string{"by"})
)

// RegisterMetrics registers the metrics of the webhooks.
func RegisterMetrics(to prometheus.Registerer) error {
	var errs []error
	for _, collector := range []prometheus.Collector{
		callDuration, decisions, verdicts, mints, lastMint, seals, certificateEnd, liveReads, savedReads,
	} {
		errs = append(errs, to.Register(collector))
	}
	return errors.Join(errs...)
}

// isDryRun says that nothing comes of a request.
func isDryRun(req admission.Request) bool { return req.DryRun != nil && *req.DryRun }

// dryRun is that as a label.
func dryRun(req admission.Request) string { return strconv.FormatBool(isDryRun(req)) }

// countedReader counts the reads of the API server.
type countedReader struct{ client.Reader }

// Get reads one object.
func (r countedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if _, ok := object.(*v1alpha1.FencedLease); ok { // a typed object does not know its kind
		kind = "FencedLease"
	}
	liveReads.WithLabelValues(kind).Inc()
	return r.Reader.Get(ctx, key, object, options...)
}
