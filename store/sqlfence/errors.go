package sqlfence

import (
	"errors"
	"fmt"

	"github.com/fencedlease/fencedlease/fence"
)

// What can be wrong with a write. After any of them the transaction is to be rolled
// back; [Runner] does so.
var (
	// ErrStale says that a newer token has been there; the error is a [*StaleError].
	// The transaction must not be tried again with the same token.
	ErrStale = errors.New("the fencing token is stale")

	// ErrNotFound says that there is no such row.
	ErrNotFound = errors.New("there is no such row")

	// ErrNotUpdated says that an UPDATE changed no row although the row is there and
	// its mark admits the token: its WHERE has another condition that does not hold.
	ErrNotUpdated = errors.New("the row is there and admits the token, but the statement did not update it")

	// ErrNullToken says that a row has no mark, but NULL, which compares with nothing.
	ErrNullToken = errors.New("the column of the token is NULL: set it to 0 in all rows, and make it NOT NULL DEFAULT 0")

	// ErrMark says that the mark in the database is not one that a token can have
	// left: something else wrote the column.
	ErrMark = errors.New("the stored mark is larger than any fencing token")

	// ErrStatement says that an UPDATE did not do what a row fence needs: store the
	// very token, in one row.
	ErrStatement = errors.New("the statement is no row fence")

	// ErrResource says that a name cannot be that of a resource.
	ErrResource = errors.New("the name of a resource has 1 to 255 bytes of UTF-8 without NUL")

	// ErrRange says that a value does not fit its column. A column for tokens is a
	// BIGINT.
	ErrRange = errors.New("a value is out of the range of its column; one for fencing tokens must be BIGINT")

	// ErrReadOnly says that the transaction or the server is read-only: a replica,
	// most likely. A fence can be checked only where writes go.
	ErrReadOnly = errors.New("the transaction or the server is read-only, a replica perhaps: fence on the primary")

	// ErrAborted says that the transaction has failed before, and that its error was
	// passed over: it must be rolled back.
	ErrAborted = errors.New("the transaction failed before, and takes no more statements: roll it back")

	// ErrCommitUnknown says that the answer to a COMMIT did not arrive, or that the work
	// ended the transaction itself. It may have been committed or not, and is not run
	// again. The token makes it safe to find out: read what is stored, and work on from
	// there.
	ErrCommitUnknown = errors.New("it is not known whether the transaction was committed")

	// ErrSetup says that the database, or the connection to it, is not set up for
	// fencing.
	ErrSetup = errors.New("not set up for fencing")
)

// StaleError is the refusal of a stale token. It is [ErrStale].
type StaleError struct {
	// Resource is the name that was given to [Store.Fence]; for a row fence, the table
	// with the row's key.
	Resource string

	// Token is the one that was presented.
	Token fence.Token

	// Mark is the highest that was there. It equals Token only where the order is
	// [StrictlyNewer].
	Mark fence.Token
}

func (e *StaleError) Error() string {
	if e.Mark == e.Token {
		return fmt.Sprintf("sqlfence: token %s is stale: its term has written %s already, and may do so once", e.Token, e.Resource)
	}
	return fmt.Sprintf("sqlfence: token %s is stale: %s has been written with token %s. You are no longer the leader: stop, or lead again and work it out anew",
		e.Token, e.Resource, e.Mark)
}

// Unwrap is [ErrStale].
func (e *StaleError) Unwrap() error { return ErrStale }

// refusal is what a mark has to say to a smaller token.
func refusal(resource string, token fence.Token, mark int64) error {
	if mark > int64(fence.MaxToken) {
		return fmt.Errorf("sqlfence: the mark of %s is %d: %w", resource, mark, ErrMark)
	}
	return &StaleError{Resource: resource, Token: token, Mark: fence.Token(mark)}
}

// validToken says what is wrong with a token that the caller presents.
func validToken(token fence.Token) error {
	if token <= fence.None || token > fence.MaxToken {
		return fmt.Errorf("sqlfence: %d: %w", int64(token), fence.ErrToken)
	}
	return nil
}
