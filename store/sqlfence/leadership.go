package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/fencedlease/fence"
)

// Leadership is where a [Runner] gets its tokens.
type Leadership interface {
	// Lead waits until this process leads with a token larger than one that was found
	// stale ([fence.None] at first), and returns it. It ends with the context, or
	// where there can be no such token.
	Lead(ctx context.Context, stale fence.Token) (fence.Token, error)
}

// LeadershipFunc is a function that takes leadership.
type LeadershipFunc func(ctx context.Context, stale fence.Token) (fence.Token, error)

// Lead calls the function.
func (f LeadershipFunc) Lead(ctx context.Context, stale fence.Token) (fence.Token, error) {
	return f(ctx, stale)
}

// errOneToken says that there is no other token to be had.
var errOneToken = errors.New("there is one token only, and no leadership to take again")

// Fixed is a token that does not change: that of the environment of kubectl fence run, or
// of the term in which the caller's work runs. A stale one is the end of it.
func Fixed(token fence.Token) Leadership {
	return LeadershipFunc(func(_ context.Context, stale fence.Token) (fence.Token, error) {
		if stale >= token {
			return fence.None, errOneToken
		}
		return token, nil
	})
}

// followPeriod is how often [Follow] looks: far below what an election takes.
const followPeriod = 50 * time.Millisecond

// Follow waits for a leader election that goes on elsewhere in the process. The function
// returns the token of the live term, or [fence.None] outside of a term; it is called
// often. With package leader, whose Election.Run competes again by itself after a term
// was lost:
//
//	sqlfence.Follow(func() fence.Token {
//		if term := election.Term(); term != nil {
//			return term.Token()
//		}
//		return fence.None
//	})
func Follow(current func() fence.Token) Leadership {
	return LeadershipFunc(func(ctx context.Context, stale fence.Token) (fence.Token, error) {
		ticker := time.NewTicker(followPeriod)
		defer ticker.Stop()
		for {
			if token := current(); token > stale {
				return token, nil
			}
			select {
			case <-ctx.Done():
				return fence.None, fmt.Errorf("waited for a token larger than %s: %w", stale, context.Cause(ctx))
			case <-ticker.C:
			}
		}
	})
}
