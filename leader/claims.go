package leader

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/claim"
)

// Config is a copy of config for clients whose writes belong to a term: any client
// that is made from a [rest.Config] (typed, dynamic, metadata, controller-runtime).
// Their writes, and only those:
//
//   - must be made with a context of a live term ([Term.Context]); else they fail
//     with [ErrNoTerm] or the term's [LostError] before any request is sent. This
//     holds for writes of every kind but Events, Leases, and reviews (of tokens,
//     access, oneself);
//   - carry the term's token, at the moment they are sent: as the annotation
//     fencedlease.io/token where they write an object's metadata. DELETE, /status
//     and JSON patches cannot: in a Pod, its identity proves the token (an object
//     whose mark is older is sealed first); elsewhere the client impersonates itself
//     with the user extra fencedlease.io/token, for which it needs the right to
//     impersonate itself with that extra (docs/controllers.md has the role);
//   - end the term at once if the answer is a refusal that names a newer token.
//
// A write that is on its way when the term is lost is cut off, and returns the
// [LostError]; so is one that was made with a context that outlives the term.
//
// A stale write (412) is never sent again; one that came with the term's own last
// token, in the moment in which that was raised, is sent again with the new one. One
// whose identity did not prove the token (428) is sent again with a nonce,
// fencedlease.io/write: a hash of what it says, so that a write that is repeated
// changes nothing. An apply that conflicts with another field manager about nothing
// but these annotations is sent again without the conflict. A fence that is
// unavailable (503) is retried by client-go itself, about once a second and ten
// times, within the term. Bodies are sent as JSON.
func (e *Election) Config(config *rest.Config) *rest.Config {
	return claim.Wrap(config, claims{e})
}

// claims are what the writes of an election present.
type claims struct{ election *Election }

// Claim is that of the term that a write belongs to.
func (c claims) Claim(ctx context.Context) (claim.Claim, error) {
	term := c.election.termOf(ctx)
	if term == nil {
		return claim.Claim{}, fmt.Errorf("%w (Lease %s): make the write with a context of a term", ErrNoTerm, c.election.lease())
	}
	if err := term.Err(); err != nil {
		return claim.Claim{}, err
	}
	return claim.Claim{Token: term.Token(), ByIdentity: term.byIdentity.Load(), Term: ending{term}}, nil
}

// ending is the end of a term, for the writes that it cuts off.
type ending struct{ *Term }

// AfterFunc calls f when the term is over.
func (e ending) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(e.over, f) }

// Refused looks at a refusal of a term's write.
func (c claims) Refused(ctx context.Context, _ claim.Claim, refused fence.Refusal) {
	if term := c.election.termOf(ctx); term != nil {
		term.refused(ctx, refused)
	}
}

// NotByIdentity notes that the writes of the live term need a nonce.
func (c claims) NotByIdentity(claim.Claim) {
	if term := c.election.Term(); term != nil {
		term.byIdentity.Store(false)
	}
}

// refused looks at a refusal. One that names a newer token than the term's, and
// another holder, ends the term at once. One that names this candidate may be
// about a token that it is being given right now, or has been taken by another
// process under its name: the Lease tells.
func (t *Term) refused(ctx context.Context, refused fence.Refusal) {
	t.election.metrics.refused(refused.Reason)
	switch facts := refused.Facts; {
	case facts.Current <= t.Token():
		// It is about this one write.
	case facts.Holder != "" && facts.Holder != t.election.Identity():
		t.lose(&LostError{why: ErrSuperseded, Current: facts.Current, Holder: facts.Holder})
	default:
		t.lock.reread(ctx, facts.Current)
	}
}

// endedBy is an error of the term's own work, with the loss of the term as its
// reason where that cut it short.
func (t *Term) endedBy(err error) error {
	lost := t.Err()
	if err == nil || lost == nil || errors.Is(err, lost) {
		return err
	}
	return fmt.Errorf("%w: %w", lost, err)
}
