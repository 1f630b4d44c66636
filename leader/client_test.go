package leader

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// A write that names no term belongs to the first: to a later one it might bring
// what the first had worked out.
func TestWriteWithoutATermBelongsToTheFirst(t *testing.T) {
	c := newCandidate(t)
	of := func(ctx context.Context) (term *Term) {
		t.Helper()
		if err := c.within(ctx, func(ctx context.Context) error {
			term = c.termOf(ctx)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return term
	}
	if got := of(t.Context()); got != nil {
		t.Errorf("before any term a write belongs to %v", got)
	}
	first := c.acquire()
	if got := of(t.Context()); got != first {
		t.Errorf("in the first term a write belongs to %v", got)
	}
	c.clock.Step(time.Minute)
	c.lock = c.newLock(func() {})
	second := c.acquire()
	if got := of(t.Context()); got != nil {
		t.Errorf("in the second term a write belongs to %v", got)
	}
	ctx, cancel := second.Context(t.Context())
	defer cancel()
	if got := of(ctx); got != second {
		t.Errorf("a write that names the second term belongs to %v", got)
	}
}

// A write after the end of a term is told apart from one that its caller cancelled,
// though client-go says the same of both.
func TestWriteAfterTheTerm(t *testing.T) {
	lost := &LostError{Lease: "prod/payments", Token: 7, why: ErrSuperseded}
	for name, tc := range map[string]struct {
		cause, err error
		fenced     bool
	}{
		"the term was lost":             {lost, context.Canceled, true},
		"the term was lost, wrapped":    {fmt.Errorf("the manager ends: %w", lost), fmt.Errorf("Put: %w", context.Canceled), true},
		"the caller cancelled":          {context.Canceled, context.Canceled, false},
		"an answer that came in time":   {lost, conflict(), false},
		"the write was stored":          {lost, nil, false},
		"it says so already":            {lost, fmt.Errorf("Put: %w", lost), true},
		"nothing was running at all":    {nil, ErrNoTerm, true},
		"the caller's own deadline":     {lost, context.DeadlineExceeded, false},
		"a failure of the way, earlier": {lost, errors.New("no route to host"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.cause != nil {
				cancel(tc.cause)
			}
			err := c.within(ctx, func(context.Context) error { return tc.err })
			if !errors.Is(err, tc.err) || IsFenced(err) != tc.fenced {
				t.Errorf("it returned %v, which is fenced: %t; want %t", err, IsFenced(err), tc.fenced)
			}
		})
	}
}
