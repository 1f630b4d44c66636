package leader

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencedlease/fencedlease/fence"
)

// metrics are those of one election; the docs of [Election] list them.
type metrics struct {
	seals    prometheus.Counter
	refusals *prometheus.CounterVec
}

// newMetrics registers the metrics of an election, if there is where.
func newMetrics(e *Election) (*metrics, error) {
	labels := prometheus.Labels{"namespace": e.options.Namespace, "lease": e.options.Name}
	m := &metrics{
		seals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fencedlease_leader_seals_total", ConstLabels: labels,
			Help: "Objects sealed with the token of a term.",
		}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fencedlease_leader_refusals_total", ConstLabels: labels,
			Help: "Writes of this candidate's terms that the fence refused, by reason.",
		}, []string{"reason"}),
	}
	if e.options.Metrics == nil {
		return m, nil
	}
	ofTerm := func(name, help string, value func(*Term) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 {
			term := e.Term()
			if term == nil {
				return 0
			}
			return value(term)
		})
	}
	var errs []error
	for _, collector := range []prometheus.Collector{
		m.seals, m.refusals,
		ofTerm("fencedlease_leader_is_leader", "1 while a term of this candidate is live, else 0.",
			func(*Term) float64 { return 1 }),
		ofTerm("fencedlease_leader_token", "The fencing token of the live term, 0 without one.",
			func(t *Term) float64 { return float64(t.Token()) }),
		ofTerm("fencedlease_leader_proof_age_seconds", "Seconds since the last renewal that succeeded was sent; 0 without a term.",
			func(t *Term) float64 { return t.sinceProof().Seconds() }),
	} {
		errs = append(errs, register(e.options.Metrics, collector))
	}
	return m, errors.Join(errs...)
}

// register registers a collector, in place of that of an earlier election for the
// same Lease: of the two, this one competes.
func register(to prometheus.Registerer, collector prometheus.Collector) error {
	err := to.Register(collector)
	if earlier := (prometheus.AlreadyRegisteredError{}); errors.As(err, &earlier) {
		to.Unregister(earlier.ExistingCollector)
		err = to.Register(collector)
	}
	return err
}

// refused counts a refusal.
func (m *metrics) refused(reason fence.Reason) { m.refusals.WithLabelValues(string(reason)).Inc() }
