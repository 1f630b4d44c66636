package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// NewManager is [ctrl.NewManager] with fenced leadership: change the one for the
// other. The Lease is the one that LeaderElectionID and LeaderElectionNamespace
// name, with the timings of the manager's options; fenced may say the same things,
// not others, and what the manager's options have no words for, such as Seal.
//
//   - Leader-elected runnables (controllers, by default) start once the term has
//     its token and its objects are sealed.
//   - Writes through mgr.GetClient() carry the token of the term ([Election.NewClient]),
//     as an annotation of every object, guarded or not, of any kind that could be.
//     While this replica does not lead they fail. Runnables that need no leader
//     election, webhooks for example, should write with a client of their own
//     (client.New(mgr.GetConfig(), …)): through this one they would fail on all
//     replicas but one, and carry a claim that is not theirs on that.
//   - The moment the term is lost, the contexts of all runnables are cancelled and
//     mgr.Start returns the [*LostError], or what a runnable returned before that. As
//     with stock leader election, the process must end then; started again it is
//     another candidate.
//   - On a shutdown in good order the term goes on until the runnables have ended.
//     Set LeaderElectionReleaseOnCancel to release the Lease then.
//
// LeaderElection is always on, whatever the options say. LeaderElectionNamespace
// defaults to the Pod's own. Options that clash are errors, and so are
// LeaderElectionResourceLockInterface, LeaderElectionConfig and NewClient, which
// fenced leadership sets itself, and another LeaderElectionResourceLock than leases.
// There are no Events about the election. A manager that is told to end while it
// still waits for its token or its seals leaves the Lease to expire.
func NewManager(config *rest.Config, options ctrl.Options, fenced Options) (ctrl.Manager, *Election, error) {
	fenced, err := fenced.forManager(options)
	if err != nil {
		return nil, nil, err
	}
	election, err := New(config, fenced)
	if err != nil {
		return nil, nil, err
	}
	ends := &endings{}
	lock := election.newLock(nil)
	lock.ended = func() { ends.with(lock.begun().Err()) }
	lock.Labels = options.LeaderElectionLabels

	options.LeaderElection = true
	options.LeaderElectionResourceLockInterface = lock
	options.LeaseDuration = &election.options.LeaseDuration
	options.RenewDeadline = &election.options.RenewDeadline
	options.RetryPeriod = &election.options.RetryPeriod
	options.NewClient = election.NewClient
	options.BaseContext = ends.of(options.BaseContext)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, nil, err
	}
	// The manager itself ends when one of its runnables returns an error.
	return mgr, election, mgr.Add(untilLost{})
}

// forManager takes the manager's options over.
func (o Options) forManager(m ctrl.Options) (Options, error) {
	if m.LeaderElectionResourceLockInterface != nil || m.LeaderElectionConfig != nil || m.NewClient != nil {
		return o, errors.New("leader: NewManager sets LeaderElectionResourceLockInterface, LeaderElectionConfig and NewClient itself: leave them out")
	}
	if lock := m.LeaderElectionResourceLock; lock != "" && lock != resourcelock.LeasesResourceLock {
		return o, fmt.Errorf("leader: LeaderElectionResourceLock is %q, but only a Lease can be fenced: leave it out", lock)
	}
	var errs []error
	take := func(field string, mine *string, theirs string) {
		if *mine != "" && theirs != "" && *mine != theirs {
			errs = append(errs, fmt.Errorf("leader: %s is %q, but the manager's options say %q", field, *mine, theirs))
		}
		*mine = cmp.Or(*mine, theirs)
	}
	takeDuration := func(field string, mine *time.Duration, theirs *time.Duration) {
		if theirs == nil {
			return
		}
		if *mine != 0 && *mine != *theirs {
			errs = append(errs, fmt.Errorf("leader: %s is %s, but the manager's options say %s", field, *mine, *theirs))
		}
		*mine = *theirs
	}
	take("Name", &o.Name, m.LeaderElectionID)
	take("Namespace", &o.Namespace, m.LeaderElectionNamespace)
	takeDuration("LeaseDuration", &o.LeaseDuration, m.LeaseDuration)
	takeDuration("RenewDeadline", &o.RenewDeadline, m.RenewDeadline)
	takeDuration("RetryPeriod", &o.RetryPeriod, m.RetryPeriod)
	if o.Namespace == "" {
		o.Namespace = ownNamespace()
	}
	if o.Logger.GetSink() == nil {
		o.Logger = m.Logger
	}
	if o.Logger.GetSink() == nil {
		o.Logger = log.Log.WithName("leader")
	}
	if o.Metrics == nil {
		o.Metrics = ctrlmetrics.Registry
	}
	return o, errors.Join(errs...)
}

// ownNamespace is the namespace of the Pod that this runs in, "" elsewhere.
func ownNamespace() string {
	data, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// endings make the contexts of all runnables end with the term: the manager itself
// would end them one group after the other, each when the one before is done.
type endings struct {
	mu   sync.Mutex
	ends []context.CancelCauseFunc
}

// of are the contexts of a manager's groups of runnables.
func (e *endings) of(base manager.BaseContextFunc) manager.BaseContextFunc {
	return func() context.Context {
		parent := context.Background()
		if base != nil {
			parent = base()
		}
		ctx, end := context.WithCancelCause(parent)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ends = append(e.ends, end)
		return ctx
	}
}

// with ends them all, in the order in which they were made. A manager makes the one
// of [untilLost] last, and so ends none of them itself, with less of a reason.
func (e *endings) with(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, end := range e.ends {
		end(cause)
	}
}

// untilLost is a runnable that fails when the term is lost.
type untilLost struct{}

// Start blocks until the manager ends, or the term does.
func (untilLost) Start(ctx context.Context) error {
	<-ctx.Done()
	if lost := (*LostError)(nil); errors.As(context.Cause(ctx), &lost) {
		return lost
	}
	return nil
}

// NeedLeaderElection says that it runs from the start.
func (untilLost) NeedLeaderElection() bool { return false }
