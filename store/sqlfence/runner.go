package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fencedlease/fencedlease/fence"
)

// The limits of a [Runner] that sets none.
const (
	DefaultMaxTerms   = 3
	DefaultMaxRetries = 10
)

// Retries wait at random from nothing up to firstBackoff, which doubles with each up to
// maxBackoff: those that collided do not collide again.
const (
	firstBackoff = 10 * time.Millisecond
	maxBackoff   = time.Second
)

// Work is the body of a transaction. It reads what it needs in the transaction, and
// returns every error that it meets there. It may be called several times, each in a new
// transaction after the last was rolled back: it must have no effect elsewhere. It must
// not end the transaction, nor run statements that do, as CREATE TABLE in MySQL.
type Work func(ctx context.Context, tx *sql.Tx, token fence.Token) error

// Runner runs transactions under a fence. Its methods are safe for concurrent use.
type Runner struct {
	// Store is where. Required.
	Store *Store

	// Leadership is where tokens come from. Required.
	Leadership Leadership

	// Resource is what [Store.Fence] is called with before the work. If it is empty the
	// work itself calls Fence, or Update with each row.
	Resource string

	// Options are those of the transactions; nil for the database's own.
	Options *sql.TxOptions

	// MaxTerms is how many tokens are tried at most, one after the other; 0 for
	// [DefaultMaxTerms]. 1 never leads again.
	MaxTerms int

	// MaxRetries is how often at most a transaction is run again with the same token
	// after a deadlock or a serialization failure; 0 for [DefaultMaxRetries], less
	// than 0 for never.
	MaxRetries int
}

// Run runs the work in a transaction, with a token, and commits it if the work returns
// nil. Whatever else happens, a panic included, the transaction is rolled back.
//
// If the token is stale ([ErrStale]) leadership is taken again and the whole work is run
// anew with the new, larger token; the stale one is not used again. If there is none to
// be had the error is ErrStale, and Leadership's own. After a deadlock or a serialization
// failure the work is run again with the same token. All waits end with the context.
//
// After a commit whose answer is lost the error is [ErrCommitUnknown], and nothing is
// run again.
func (r Runner) Run(ctx context.Context, work Work) error {
	var stale fence.Token
	var last error
	for range orDefault(r.MaxTerms, DefaultMaxTerms) {
		token, err := r.Leadership.Lead(ctx, stale)
		if err == nil && token <= stale {
			err = fmt.Errorf("leadership was taken again with token %s, and %s was stale already", token, stale)
		}
		if err != nil && last != nil {
			return fmt.Errorf("%w; %w", last, err)
		}
		if err != nil {
			return fmt.Errorf("sqlfence: there is no leadership: %w", err)
		}
		if last = r.inTerm(ctx, token, work); !errors.Is(last, ErrStale) {
			return last
		}
		stale = token
	}
	return last
}

// inTerm runs the work with one token, again and again if it must.
func (r Runner) inTerm(ctx context.Context, token fence.Token, work Work) error {
	if err := validToken(token); err != nil {
		return err
	}
	retries := max(orDefault(r.MaxRetries, DefaultMaxRetries), 0)
	for attempt := 0; ; attempt++ {
		err := r.once(ctx, token, work)
		if !serverErrorOf(err).is(transient) {
			return err
		}
		if attempt == retries {
			return fmt.Errorf("sqlfence: gave up after %d retries: %w", retries, err)
		}
		if waitErr := backOff(ctx, attempt); waitErr != nil {
			return fmt.Errorf("%w; %w", err, waitErr)
		}
	}
}

// once runs the work in one transaction.
func (r Runner) once(ctx context.Context, token fence.Token, work Work) error {
	tx, err := r.Store.begin(ctx, r.Options)
	if err != nil {
		return explain(err)
	}
	defer tx.close() // rolls back what was not committed

	if r.Resource != "" {
		if err := r.Store.Fence(ctx, tx.Tx, r.Resource, token); err != nil {
			return err
		}
	}
	if err := work(ctx, tx.Tx, token); err != nil {
		return explain(err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return tx.commit(ctx)
}

// backOff waits before the next attempt.
func backOff(ctx context.Context, attempt int) error {
	limit := min(firstBackoff<<min(attempt, 10), maxBackoff)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(rand.N(limit)):
		return nil
	}
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
