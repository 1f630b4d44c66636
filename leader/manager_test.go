package leader

import (
	"context"
	"errors"
	"testing"
)

// The contexts of runnables end with the loss of the term as their reason, before
// anybody who waits for it can end them with another.
func TestRunnablesEndWithTheTerm(t *testing.T) {
	type key struct{}
	lost := &LostError{Lease: "prod/payments", Token: 7, why: ErrSuperseded}
	for name, base := range map[string]func() context.Context{
		"without a base": nil,
		"with a base":    func() context.Context { return context.WithValue(t.Context(), key{}, "value") },
	} {
		t.Run(name, func(t *testing.T) {
			ends := &endings{}
			contexts := ends.of(base)
			first, second := contexts(), contexts()
			if first.Err() != nil || base != nil && first.Value(key{}) != "value" {
				t.Fatalf("the context is %v", first)
			}
			ends.with(lost)
			for _, ctx := range []context.Context{first, second} {
				if !errors.Is(context.Cause(ctx), ErrSuperseded) {
					t.Errorf("a context ended with %v", context.Cause(ctx))
				}
				if err := (untilLost{}).Start(ctx); !errors.Is(err, ErrSuperseded) {
					t.Errorf("the manager ends with %v", err)
				}
			}
		})
	}
}

// A manager that is told to end does not fail.
func TestManagerEndsInGoodOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (untilLost{}).Start(ctx); err != nil {
		t.Errorf("it ends with %v", err)
	}
}
