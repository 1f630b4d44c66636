package leader

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/fencedlease/fencedlease/fence"
)

// Term is one holding of the Lease by this process, from an acquisition until it
// is lost or released. Once over it never comes back, not even when the same
// process acquires the Lease again; that is another Term, with the same token if
// nobody held the Lease in between. Its methods are safe for concurrent use.
type Term struct {
	election    *Election
	lock        *lock
	fencedLease string

	token      atomic.Int64
	byIdentity atomic.Bool // the writer identity proves the token; learned

	over context.Context // done when the term is over; its cause is a *LostError
	end  context.CancelCauseFunc

	mu    sync.Mutex
	proof time.Time   // when the last renewal that succeeded was sent
	timer clock.Timer // ends the term when the proof is too old
}

// newTerm is a term that has not begun: see [Term.begin].
func newTerm(l *lock, token fence.Token, fencedLease string, writer fence.Identity) *Term {
	t := &Term{election: l.election, lock: l, fencedLease: fencedLease}
	t.over, t.end = context.WithCancelCause(context.Background())
	t.token.Store(int64(token))
	// A Pod's identity proves its token by default; where an installation wants it
	// otherwise, the answer to the first write says so (428).
	t.byIdentity.Store(writer.Kind() == fence.KindPod)
	return t
}

// Token is the term's fencing token, to be presented to other stores as well. It
// may rise while the term goes on (spec.minToken of the FencedLease was raised, or
// its counter restored), and never falls: ask for it whenever you need it.
func (t *Term) Token() fence.Token { return fence.Token(t.token.Load()) }

// FencedLease is the name of the FencedLease that handed out the token, in the
// namespace of the Lease: the value of the label fencedlease.io/guarded-by on the
// objects that the token is for.
func (t *Term) FencedLease() string { return t.fencedLease }

// Deadline is when the term ends unless another renewal succeeds, each of which
// moves it. It is for what must end with the term and cannot watch [Term.Done]:
// another process, for one, which outlives this one's death.
func (t *Term) Deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.proof.Add(t.election.options.RenewDeadline)
}

// Done is closed the moment the term is over.
func (t *Term) Done() <-chan struct{} { return t.over.Done() }

// Err is nil while the term is live, and a [*LostError] once it is over. It sends
// no request: somebody may have taken over since the last renewal.
func (t *Term) Err() error {
	if t.untilUnproven() <= 0 { // after a pause a write may come before the timer
		t.lose(&LostError{why: ErrUnproven})
	}
	if t.over.Err() == nil {
		return nil
	}
	return context.Cause(t.over)
}

// Context is a copy of parent that belongs to the term. Writes made with it, by
// clients made from [Election.Config] or [Election.NewClient], carry the term's
// token, and fail once the term is over, whatever the process does by then. It is
// cancelled with parent, and at once when the term is over, with the [*LostError]
// as its cause. Call cancel when the context is needed no more.
func (t *Term) Context(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ctx, cancelCause := context.WithCancelCause(context.WithValue(parent, termKey{}, t))
	stop := context.AfterFunc(t.over, func() { cancelCause(context.Cause(t.over)) })
	return ctx, func() {
		stop()
		cancelCause(context.Canceled)
	}
}

// termKey is the key of the term in a context.
type termKey struct{}

// termOf is the term that a context belongs to, nil if none of this election.
func (e *Election) termOf(ctx context.Context) *Term {
	t, ok := ctx.Value(termKey{}).(*Term)
	if !ok || t.election != e {
		return nil
	}
	return t
}

// begin makes the term live, with the time at which its proof was sent.
func (t *Term) begin(proof time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proof = proof
	// In a goroutine of its own: a fake clock calls back while it holds its lock.
	t.timer = t.election.options.Clock.AfterFunc(t.election.options.RenewDeadline-t.election.options.Clock.Since(proof), func() { go t.expire() })
}

// prove moves the deadline: a renewal that was sent then has succeeded.
func (t *Term) prove(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proof = sent
}

// raise notes a newer token that this very term was given.
func (t *Term) raise(token fence.Token) {
	if before := t.Token(); token > before {
		t.election.options.Logger.Info("The token of this term was raised", "from", before, "to", token)
		t.token.Store(int64(token))
	}
}

// sinceProof is the age of the last proof.
func (t *Term) sinceProof() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.election.options.Clock.Since(t.proof)
}

// untilUnproven is how long the term may go on without another proof.
func (t *Term) untilUnproven() time.Duration {
	return t.election.options.RenewDeadline - t.sinceProof()
}

// expire is what the timer calls: it ends a term whose proof is too old, and else
// looks again when it would be.
func (t *Term) expire() {
	left := t.untilUnproven()
	if left <= 0 {
		t.lose(&LostError{why: ErrUnproven})
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over.Err() == nil {
		t.timer.Reset(left)
	}
}

// lose ends the term, the first time only: before it returns Err says so, and the
// contexts of the term are being cancelled.
func (t *Term) lose(lost *LostError) {
	lost.Lease, lost.Token = t.election.lease(), t.Token()
	t.end(lost)
	if first := (*LostError)(nil); !errors.As(context.Cause(t.over), &first) || first != lost {
		return // it was over before
	}
	t.mu.Lock()
	t.timer.Stop()
	t.mu.Unlock()
	t.election.ended(t, lost)
	t.lock.ended()
}
