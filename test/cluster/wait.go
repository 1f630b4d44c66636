package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// waitFor calls try until it returns no error. When the deadline passes it
// returns the last error, with what was waited for.
func (c *Cluster) waitFor(ctx context.Context, timeout time.Duration, what string, try func(context.Context) error) error {
	return waitUnless(ctx, nil, timeout, what, try)
}

// waitUnless is waitFor that gives up early when gone is closed, since what is
// waited for has ended.
func waitUnless(ctx context.Context, gone <-chan struct{}, timeout time.Duration, what string, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		if err := try(ctx); err == nil {
			return true, nil
		} else if ctx.Err() == nil {
			last = err
		}
		select {
		case <-gone:
			return false, errors.New("it ended")
		default:
			return false, nil
		}
	})
	switch {
	case err == nil:
		return nil
	case last == nil:
		return fmt.Errorf("waited for %s: %w", what, err)
	default:
		return fmt.Errorf("waited for %s: %w; the last answer: %w", what, err, last)
	}
}
