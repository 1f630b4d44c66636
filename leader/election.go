package leader

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Election is a candidate for one Lease. It is safe for concurrent use, but competes
// once at a time: in one call of [Election.Run], or through one [Election.Lock].
//
// Where [Options.Metrics] is set it registers, each with the labels namespace and
// lease: fencedlease_leader_is_leader (1 while a term is live),
// fencedlease_leader_token, fencedlease_leader_proof_age_seconds,
// fencedlease_leader_seals_total, and fencedlease_leader_refusals_total by reason.
type Election struct {
	options Options
	leases  coordinationclient.LeasesGetter
	objects metadata.Interface // for seals
	config  *rest.Config       // as it was given
	metrics *metrics
	current atomic.Pointer[Term] // live, or nil
	terms   atomic.Int64         // that began
}

// New makes a candidate. It sends no request. The config says how to reach the API
// server and as whom. Renewals do not share its rate limiter, nor its connections,
// with anyone: a controller that is busy cannot starve its own lease.
//
// The rights that it needs: get, create and update on leases; where [Options.Seal]
// is set, get, list and patch on those objects. The error says everything that is
// wrong with the options at once.
func New(config *rest.Config, options Options) (*Election, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	e := &Election{options: options, config: config}
	own := ownConfig(config, options)
	if e.leases, err = coordinationclient.NewForConfig(own); err != nil {
		return nil, fmt.Errorf("leader: no client for Leases: %w", err)
	}
	if e.objects, err = metadata.NewForConfig(own); err != nil {
		return nil, fmt.Errorf("leader: no client for sealing: %w", err)
	}
	if e.metrics, err = newMetrics(e); err != nil {
		return nil, fmt.Errorf("leader: the metrics of Lease %s cannot be registered: %w", e.lease(), err)
	}
	return e, nil
}

// ownConfig is that of the requests of the election itself. A request may take up
// to half of RenewDeadline, so that a single one that hangs does not end a term.
func ownConfig(config *rest.Config, options Options) *rest.Config {
	own := rest.AddUserAgent(rest.CopyConfig(config), "leader-election") // which changes what it is given
	own.Timeout = max(options.RenewDeadline/2, time.Second)
	own.RateLimiter, own.QPS = nil, -1 // the retry period is the limit
	if own.Dial == nil {
		// client-go shares connections between all clients that dial alike.
		own.Dial = (&net.Dialer{Timeout: own.Timeout, KeepAlive: options.LeaseDuration}).DialContext
	}
	return own
}

// Identity is the holderIdentity of this candidate.
func (e *Election) Identity() string { return e.options.Identity }

// Term is the live term, or nil if this candidate does not lead now.
func (e *Election) Term() *Term {
	term := e.current.Load()
	if term == nil || term.Err() != nil {
		return nil
	}
	return term
}

// lease is the Lease's name for people.
func (e *Election) lease() string { return e.options.Namespace + "/" + e.options.Name }

// began is told that a term is live.
func (e *Election) began(t *Term) {
	e.terms.Add(1)
	e.current.Store(t)
	e.options.Logger.Info("A term of fenced leadership begins", "lease", e.lease(), "identity", e.options.Identity, "token", t.Token())
}

// ended is told that a term is over.
func (e *Election) ended(t *Term, lost *LostError) {
	e.current.CompareAndSwap(t, nil)
	e.options.Logger.Info("A term of fenced leadership is over", "lease", e.lease(), "identity", e.options.Identity, "token", t.Token(), "why", lost.Error())
}

// Lock is a lock for one [leaderelection.LeaderElector] of your own, with the
// timings of the options. The elector behaves as ever, with these differences: it
// starts leading only once the term has a token and its objects are sealed, and
// the term, [Election.Term], ends at once where the elector itself would go on
// until its own RenewDeadline. In OnStartedLeading, make the context of your work
// from [Term.Context]. After its term is over a lock fails every call; make
// another lock and elector to compete again. [Election.Run] does all that.
func (e *Election) Lock() resourcelock.Interface { return e.newLock(func() {}) }

// Run competes for the Lease and calls work with each term, until ctx ends or work
// returns from a term that is still live; it returns what work returned then.
//
// The context of work is that of the term ([Term.Context]). When the term is lost
// the context is cancelled at once, and Run waits for work to return, drops its
// error, and competes again: with the same token if nobody held the Lease in
// between, else with a new one. When ctx ends, or work returns, the Lease is
// renewed until work has returned, and then released, so that the next candidate
// need not wait; work may still write until then, with [context.WithoutCancel] of
// its context. Work that must end the candidacy when it loses its term cancels ctx.
func (e *Election) Run(ctx context.Context, work func(ctx context.Context, term *Term) error) error {
	for ctx.Err() == nil {
		if lost, err := e.serve(ctx, work); !lost {
			return err
		}
	}
	return nil
}

// serve competes until one term is over; lost says that it was not its own end.
func (e *Election) serve(ctx context.Context, work func(ctx context.Context, term *Term) error) (lost bool, err error) {
	// The elector outlives ctx: it renews until work has returned.
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	lock := e.newLock(stop)
	leading := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		Name:            e.options.Name,
		LeaseDuration:   e.options.LeaseDuration,
		RenewDeadline:   e.options.RenewDeadline,
		RetryPeriod:     e.options.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leading) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return false, err
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		elector.Run(electing)
	}()
	defer func() {
		stop()
		<-stopped
		lock.giveUp(ctx)
	}()

	select {
	case <-leading:
	case <-ctx.Done():
		return false, nil
	}
	term := lock.begun()
	working, cancel := term.Context(ctx)
	defer cancel()
	err = work(working, term)
	if term.Err() == nil {
		return false, err
	}
	if err != nil {
		e.options.Logger.Info("The work of a term that is over returned an error", "lease", e.lease(), "error", err.Error())
	}
	return true, nil
}

// giveUp releases a Lease that was acquired but never led from, because ctx ended
// while work still waited for a token or for seals, or before the answer to the
// acquisition arrived: the elector does not know that it holds it.
func (l *lock) giveUp(ctx context.Context) {
	l.requests.Lock()
	waits := l.begun() == nil && (len(l.unknown) > 0 || l.answer != nil && holder(l.answer) == l.Identity())
	l.requests.Unlock()
	if !waits {
		return
	}
	ctx = context.WithoutCancel(ctx) // the client's own timeout bounds each request
	record, _, err := l.Get(ctx)
	if err == nil && record.HolderIdentity == l.Identity() {
		now := metav1.NewTime(l.election.options.Clock.Now())
		err = l.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	}
	if err != nil {
		l.election.options.Logger.Info("The Lease was not released, and stays held until it expires", "lease", l.election.lease(), "error", err.Error())
	}
}
