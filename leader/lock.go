package leader

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/keys"
)

// lock is client-go's own Lease lock, which does the requests, and an observer of
// every answer: from these it learns of its token, and of its loss. It sends none
// of its own, but for sealing.
//
// It is good for one term. Once that is over every call fails without a request:
// an elector that has not noticed yet must not acquire anew behind the back of
// work that still runs.
type lock struct {
	*resourcelock.LeaseLock

	election *Election
	ended    func() // is called when the term is over

	requests sync.Mutex // one request at a time, in one order for everybody; guards what follows
	answer   *coordinationv1.Lease
	unknown  []time.Time // the renewTimes of renewals since the last answered one, whose outcome is not known

	rereads atomic.Int64 // that were begun

	acquired *Term // acquired, but not begun: objects are left to be sealed

	mu   sync.Mutex
	term *Term // begun
}

// newLock is a lock for one elector. ended is called when its term is over.
func (e *Election) newLock(ended func()) *lock {
	l := &lock{election: e, ended: ended}
	l.LeaseLock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.options.Namespace, Name: e.options.Name},
		Client:     observedGetter{e.leases, l},
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.options.Identity},
	}
	return l
}

// begun is the lock's term, nil before it began; it may be over.
func (l *lock) begun() *Term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

// spent is why the lock takes part no more, nil if it does.
func (l *lock) spent() error {
	if term := l.begun(); term != nil {
		return term.Err()
	}
	return nil
}

// Get reads the Lease for the elector.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.requests.Lock()
	defer l.requests.Unlock()
	if err := l.spent(); err != nil {
		return nil, nil, err
	}
	record, raw, err := l.LeaseLock.Get(ctx)
	l.read(err)
	return record, raw, err
}

// Create creates the Lease for the elector, and so acquires it.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Create)
}

// Update acquires, renews or releases the Lease for the elector. An acquisition
// counts only once the Lease has a token for this candidate and the objects to
// seal are sealed. Until then it fails, and the elector, which finds itself the
// holder, tries again and so renews: the Lease stays held, and work does not start.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Update)
}

func (l *lock) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	l.requests.Lock()
	defer l.requests.Unlock()
	if err := l.spent(); err != nil {
		return err
	}
	if record.HolderIdentity == "" {
		return l.release(ctx, record, send)
	}
	at := l.election.options.Clock.Now()
	term := l.begun()
	if err := send(ctx, record); err != nil {
		if term == nil {
			l.unknown = nil // one will do to know that the Lease may be held
		}
		if !isDefinite(err) {
			l.unknown = append(l.unknown, record.RenewTime.Time)
		}
		return err
	}
	l.unknown = nil
	if term == nil {
		return l.begin(ctx, at)
	}
	l.renewed(term, at)
	return term.Err()
}

// release ends the term before the Lease is free, so that no write is made after.
func (l *lock) release(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	l.acquired = nil
	if term := l.begun(); term != nil {
		term.lose(&LostError{why: ErrReleased})
	}
	return send(ctx, record)
}

// begin starts the term that was acquired by a write sent at that time, after it
// has sealed what is to be sealed.
func (l *lock) begin(ctx context.Context, at time.Time) error {
	e := l.election
	token, stored := l.token()
	if token == fence.None {
		l.acquired = nil
		return fmt.Errorf("the Lease %s hands out no fencing token, so work does not start: "+
			"is there a FencedLease for it, and is it Ready? (kubectl get fencedlease -n %s)", e.lease(), e.options.Namespace)
	}
	if l.acquired == nil || l.acquired.Token() != token {
		l.acquired = newTerm(l, token, stored.FencedBy, fence.Identity(stored.TokenHolder))
	}
	// Half of what a proof is good for: then the Lease is renewed, and sealing goes
	// on with what is left.
	sealing, cancel := context.WithTimeout(ctx, e.options.RenewDeadline/2)
	defer cancel()
	if err := l.acquired.seal(sealing, e.options.Seal); err != nil {
		return fmt.Errorf("work under Lease %s does not start: %w", e.lease(), err)
	}
	if e.options.Clock.Since(at) >= e.options.RenewDeadline {
		return fmt.Errorf("work under Lease %s does not start: it took too long to acquire and seal", e.lease())
	}
	l.mu.Lock()
	l.term, l.acquired = l.acquired, nil
	l.mu.Unlock()
	l.term.begin(at)
	e.began(l.term)
	return nil
}

// renewed looks at the answer to a renewal that was sent at that time. The API
// server compared revisions: nobody held the Lease since the answer before.
func (l *lock) renewed(term *Term, at time.Time) {
	switch token, _ := l.token(); {
	case token == fence.None:
		term.lose(&LostError{why: ErrUnfenced})
	case token < term.Token(): // the counter was lost; what is stored may be of any age
		term.lose(&LostError{why: ErrSuperseded, Current: token, Holder: l.Identity()})
	default:
		term.raise(token)
		term.prove(at)
	}
}

// read looks at the answer to a read.
func (l *lock) read(err error) {
	term := l.begun()
	switch {
	case apierrors.IsNotFound(err):
		l.acquired = nil
		if term != nil {
			term.lose(&LostError{why: ErrTakenAway})
		}
	case err != nil:
		// It shows nothing, and the proof grows older.
	case term != nil:
		if lost := l.judge(term); lost != nil {
			term.lose(lost)
		}
	case holder(l.answer) != l.Identity():
		l.acquired = nil
	}
}

// judge says from the Lease as it was read why a term is over, nil if it goes on.
func (l *lock) judge(term *Term) *LostError {
	stored := keys.OfLease(l.answer.Labels, l.answer.Annotations)
	current := stored.CurrentToken()
	switch holder := holder(l.answer); {
	case holder == "":
		return &LostError{why: ErrTakenAway}
	case holder != l.Identity():
		return &LostError{why: ErrSuperseded, Current: current, Holder: holder}
	case !stored.Fenced() || stored.IsRetired():
		return &LostError{why: ErrUnfenced}
	case current > term.Token() && l.isOwnWrite():
		term.raise(current) // in a renewal whose answer did not arrive
		return nil
	case current != term.Token(), stored.TokenFor != "" && stored.TokenFor != l.Identity():
		return &LostError{why: ErrSuperseded, Current: current, Holder: stored.TokenFor}
	default: // token-for is cleared: the token rises with the next renewal
		return nil
	}
}

// isOwnWrite says whether the Lease stands as a renewal left it whose outcome was
// not known. A new token in it then went to this very term: the API server compared
// revisions, so nobody held the Lease in between.
func (l *lock) isOwnWrite() bool {
	renewed := l.answer.Spec.RenewTime
	return renewed != nil && slices.ContainsFunc(l.unknown, func(sent time.Time) bool {
		return renewed.Time.Equal(sent.Truncate(time.Microsecond)) // as Leases store it
	})
}

// reread reads the Lease because a refusal named a newer token than the term's. Of
// many that were refused at once, one reads for all.
func (l *lock) reread(ctx context.Context, newer fence.Token) {
	before := l.rereads.Load()
	l.requests.Lock()
	defer l.requests.Unlock()
	term := l.begun()
	if term.Err() != nil || term.Token() >= newer || l.rereads.Load() != before || ctx.Err() != nil {
		return // the answer to a renewal came first, or to another's reading
	}
	l.rereads.Add(1)
	lease, err := l.election.leases.Leases(l.election.options.Namespace).Get(ctx, l.election.options.Name, metav1.GetOptions{})
	if err != nil {
		l.election.options.Logger.Info("Could not read the Lease again after a refusal", "error", err.Error())
	} else {
		l.answer = lease
	}
	l.read(err)
}

// token is the one that the last answer gave to this candidate, None if it gave
// none: it counts only if it was minted for this identity and the Lease is not
// retired (DESIGN section 4).
func (l *lock) token() (fence.Token, fence.Keys) {
	stored := keys.OfLease(l.answer.Labels, l.answer.Annotations)
	if !stored.Fenced() || stored.IsRetired() || stored.TokenFor != l.Identity() {
		return fence.None, stored
	}
	return stored.CurrentToken(), stored
}

// isDefinite says whether an error shows that a write was not stored.
func isDefinite(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError
}

// holder is the holderIdentity of a Lease, "" if nobody holds it.
func holder(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }
