package webhooks

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCoalescerSharesNoReadThatBegan: a read that began before a request arrived
// could be older than a token minted in between.
func TestCoalescerSharesNoReadThatBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		release := make(chan struct{})
		c := newCoalescer(time.Minute, func(context.Context, string) (int64, error) {
			n := reads.Add(1)
			<-release
			return n, nil
		})
		var got [6]int64
		var wg sync.WaitGroup
		get := func(i int, key string) {
			wg.Go(func() {
				value, err := c.get(t.Context(), key)
				if err != nil {
					t.Error(err)
				}
				got[i] = value
			})
			synctest.Wait()
		}
		get(0, "a") // begins read 1
		for i := 1; i < 5; i++ {
			get(i, "a") // arrive while it is under way: all wait for one later read
		}
		get(5, "b") // another key waits for nobody
		if n := reads.Load(); n != 2 {
			t.Fatalf("%d reads under way, want 2: one of each key", n)
		}
		release <- struct{}{}
		release <- struct{}{}
		synctest.Wait()
		release <- struct{}{}
		wg.Wait()
		if want := [6]int64{1, 3, 3, 3, 3, 2}; got != want {
			t.Errorf("reads seen %v, want %v", got, want)
		}
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.keys) != 0 {
			t.Errorf("%d keys left behind", len(c.keys))
		}
	})
}

func TestCoalescerDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoalescer(3*time.Second, func(ctx context.Context, _ string) (int, error) {
			<-ctx.Done() // an API server that does not answer
			return 0, ctx.Err()
		})
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := c.get(impatient, "a"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("got %v after %s, want the caller's deadline after 1s", err, time.Since(began))
		}
		if _, err := c.get(t.Context(), "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the read's deadline", err)
		}
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("took %s, want 6s: the first read, and then its own", took)
		}
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.keys) != 0 {
			t.Errorf("%d keys left behind", len(c.keys))
		}
	})
}
