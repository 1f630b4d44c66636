package sqlfence_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/store/sqlfence"
)

// There is one token, and no other.
func TestFixed(t *testing.T) {
	tests := map[string]struct {
		stale fence.Token
		want  fence.Token
	}{
		"at first":                  {fence.None, 7},
		"an older one was stale":    {6, 7},
		"it was stale":              {7, fence.None},
		"a newer one was, somehow":  {8, fence.None},
		"the largest one was stale": {fence.MaxToken, fence.None},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := sqlfence.Fixed(7).Lead(t.Context(), tc.stale)
			if got != tc.want || (err != nil) != (tc.want == fence.None) {
				t.Errorf("it returned %s, %v", got, err)
			}
		})
	}
}

// An election elsewhere is waited for until its token is newer than the stale one.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var current atomic.Int64
		current.Store(6) // the term does not know yet that it is over
		go func() {
			time.Sleep(10 * time.Second)
			current.Store(0)
			time.Sleep(10 * time.Second)
			current.Store(8)
		}()
		begin := time.Now()
		leadership := sqlfence.Follow(func() fence.Token { return fence.Token(current.Load()) })
		if got, err := leadership.Lead(t.Context(), 6); err != nil || got != 8 {
			t.Errorf("it returned %s, %v", got, err)
		}
		if waited := time.Since(begin).Round(time.Second); waited != 20*time.Second {
			t.Errorf("it waited %s", waited)
		}
		if got, err := leadership.Lead(t.Context(), fence.None); err != nil || got != 8 {
			t.Errorf("at first it returned %s, %v", got, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got, err := leadership.Lead(ctx, 8); got != fence.None || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without an end it returned %s, %v", got, err)
		}
	})
}
