package leader

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/utils/clock"
)

// The default timings, those of client-go and of Kubernetes' own components.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// Options say what to compete for, and how. Only Namespace and Name are required.
type Options struct {
	// Namespace and Name are those of the Lease. It may be missing: the first
	// candidate creates it, as with client-go.
	Namespace string
	Name      string

	// Identity is the holderIdentity of this candidate. It must be its own: two
	// candidates with one identity each believe that they hold the Lease. Defaults
	// to the host name (in a Pod, its name) with a random suffix, unique to the
	// process.
	Identity string

	// LeaseDuration is how long others leave a Lease alone that is not renewed. It
	// must be a whole number of seconds, at least one. Defaults to 15 s.
	LeaseDuration time.Duration

	// RenewDeadline is how long a term goes on without proof. The clock runs from
	// the moment at which the last successful renewal was sent; when the deadline
	// passes, the term is lost with [ErrUnproven], before anybody else may take the
	// Lease. It must be less than LeaseDuration; what lies between is the time that
	// work has to end. The clock stands still while the machine sleeps: the first
	// renewal afterwards decides. Defaults to 10 s.
	RenewDeadline time.Duration

	// RetryPeriod is the time between two renewals, or two attempts to acquire. A
	// request to the Lease may take up to half of RenewDeadline. RetryPeriod must
	// be less than RenewDeadline divided by 1.2. Defaults to 2 s.
	RetryPeriod time.Duration

	// Seal lists the objects to seal before the work of a term starts; while that
	// fails, the Lease is held and renewed, work waits, and the log says why.
	// Empty by default: nothing is sealed.
	Seal []Target

	// Clock measures the age of proofs. Defaults to the real one. client-go's
	// elector always keeps real time.
	Clock clock.WithDelayedExecution

	// Logger gets a line for each term that begins or ends, and for what delays
	// one. Nothing is logged by default ([NewManager]: the manager's logger).
	Logger logr.Logger

	// Metrics is where the metrics of the election are registered; see
	// [Election]. Nothing is registered by default ([NewManager]:
	// controller-runtime's registry, which its /metrics serves).
	Metrics prometheus.Registerer
}

// complete fills in defaults and says what is wrong with the rest.
func (o Options) complete() (Options, error) {
	o.LeaseDuration = withDefault(o.LeaseDuration, DefaultLeaseDuration)
	o.RenewDeadline = withDefault(o.RenewDeadline, DefaultRenewDeadline)
	o.RetryPeriod = withDefault(o.RetryPeriod, DefaultRetryPeriod)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("no Identity given, and the host has no name: %w", err)
		}
		o.Identity = host + "_" + string(uuid.NewUUID())
	}
	return o, o.validate()
}

func withDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// validate finds everything that is wrong at once.
func (o Options) validate() error {
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("leader: "+format, args...))
		}
	}
	must(o.Namespace != "", "Namespace is required: that of the Lease")
	must(o.Name != "", "Name is required: that of the Lease")
	// The Lease stores whole seconds: others would take it before a fraction is over.
	must(o.LeaseDuration >= time.Second && o.LeaseDuration%time.Second == 0,
		"LeaseDuration must be a whole number of seconds, at least 1s, and is %s", o.LeaseDuration)
	must(o.RenewDeadline < o.LeaseDuration,
		"RenewDeadline (%s) must be less than LeaseDuration (%s): work needs time to end before others may take the Lease", o.RenewDeadline, o.LeaseDuration)
	must(o.RetryPeriod > 0, "RetryPeriod must be more than 0, and is %s", o.RetryPeriod)
	must(o.RenewDeadline > time.Duration(leaderelection.JitterFactor*float64(o.RetryPeriod)),
		"RenewDeadline (%s) must be more than %g times RetryPeriod (%s), or one late renewal ends a term", o.RenewDeadline, leaderelection.JitterFactor, o.RetryPeriod)
	for _, target := range o.Seal {
		if err := target.validate(); err != nil {
			errs = append(errs, fmt.Errorf("leader: Seal: %w", err))
		}
	}
	return errors.Join(errs...)
}
