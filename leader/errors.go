package leader

import (
	"errors"
	"fmt"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/refusal"
)

// Why a term is over; each is what a [LostError] unwraps to.
var (
	// ErrSuperseded says that a newer token was handed out: to another holder, or
	// to another process under the same identity. Whatever the term's work still
	// has in hand is stale. It must not be written again with a newer token, but
	// worked out anew from what is stored by then.
	ErrSuperseded = errors.New("a newer token was handed out")

	// ErrUnproven says that no renewal succeeded for RenewDeadline. Nobody need have
	// taken over: the same identity that acquires the Lease again before anyone
	// else gets the same token back, and goes on.
	ErrUnproven = errors.New("the Lease could not be renewed in time")

	// ErrTakenAway says that somebody else released or deleted the Lease. Anyone
	// may take it from that moment.
	ErrTakenAway = errors.New("somebody released the Lease")

	// ErrUnfenced says that the Lease hands out no tokens any more: its FencedLease
	// was deleted, or wraps it no more.
	ErrUnfenced = errors.New("the Lease is not fenced any more")

	// ErrReleased says that the term ended in good order: its work was done, and
	// the Lease was given up by its holder.
	ErrReleased = errors.New("the Lease was released")
)

// ErrNoTerm is what a write returns that is made outside a term. Nothing was sent.
var ErrNoTerm = errors.New("no term of fenced leadership is running here, so nothing was sent")

// LostError is how a term ended. It is the cause of the term's context, and what
// writes return that were made in that term, sent or not. It unwraps to one of
// [ErrSuperseded], [ErrUnproven], [ErrTakenAway], [ErrUnfenced] and [ErrReleased].
type LostError struct {
	// Lease is the Lease's namespace and name, with a slash between.
	Lease string

	// Token is the last one that the term had.
	Token fence.Token

	// Current is the newer token, if it was seen; else [fence.None].
	Current fence.Token

	// Holder is the identity to which it was handed out, if that was seen. It may
	// be the term's own identity, used by another process.
	Holder string

	why error
}

func (e *LostError) Error() string {
	message := fmt.Sprintf("the term with token %s of Lease %s is over: %s", e.Token, e.Lease, e.why)
	if e.Current != fence.None && e.Current != e.Token {
		message += fmt.Sprintf("; current is %s", e.Current)
	}
	if e.Holder != "" {
		message += fmt.Sprintf(", and the holder %q", e.Holder)
	}
	return message
}

// Unwrap is why the term is over.
func (e *LostError) Unwrap() error { return e.why }

// IsFenced says whether a write came to nothing because it does not belong to the
// newest term: it was made outside a term or in one that is over ([ErrNoTerm],
// [LostError]), or the fence refused it as stale (HTTP 412, FencingTokenStale).
// Such a write must not be tried again as it is.
func IsFenced(err error) bool {
	if errors.Is(err, ErrNoTerm) {
		return true
	}
	if lost := (*LostError)(nil); errors.As(err, &lost) {
		return true
	}
	refused, ok := refusal.OfError(err)
	return ok && refused.Reason == fence.ReasonStale
}

// RefusalOf is what the fence said when it refused a write, with the token that
// the write presented, the object's mark, the current token and its holder as far
// as they are known. It is false for every other error, local ones included.
func RefusalOf(err error) (fence.Refusal, bool) { return refusal.OfError(err) }
