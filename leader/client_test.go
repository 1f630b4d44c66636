package leader

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

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
