package webhooks

import (
	"context"
	"sync"
	"time"
)

// coalescer shares live reads between concurrent requests. A read is shared
// only by requests that arrived before it began: to a later one, its value could
// be older than a token minted in between.
type coalescer[K comparable, V any] struct {
	read    func(context.Context, K) (V, error)
	timeout time.Duration // of one read

	mu   sync.Mutex
	keys map[K]*flights[V] // keys that are being read
}

// flights are the reads of one key: one under way, and one that begins when
// that ends, if anybody waits for it.
type flights[V any] struct {
	waiting *flight[V]
}

type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

func newCoalescer[K comparable, V any](timeout time.Duration, read func(context.Context, K) (V, error)) *coalescer[K, V] {
	return &coalescer[K, V]{read: read, timeout: timeout, keys: map[K]*flights[V]{}}
}

// get returns a value whose read began after the call, or the context's error.
func (c *coalescer[K, V]) get(ctx context.Context, key K) (V, error) {
	f := c.board(key)
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// board finds the next read of the key that has not begun.
func (c *coalescer[K, V]) board(key K) *flight[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	under, busy := c.keys[key]
	if !busy {
		c.keys[key] = &flights[V]{}
		f := &flight[V]{done: make(chan struct{})}
		go c.fly(key, f)
		return f
	}
	if under.waiting == nil {
		under.waiting = &flight[V]{done: make(chan struct{})}
	} else {
		savedReads.WithLabelValues(savedByCoalescing).Inc()
	}
	return under.waiting
}

// fly reads for one flight after another until nobody waits. It ends by itself:
// each read has a deadline of its own, since no single request owns it.
func (c *coalescer[K, V]) fly(key K, f *flight[V]) {
	for f != nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
		f.value, f.err = c.read(ctx, key)
		cancel()
		close(f.done)

		c.mu.Lock()
		f = c.keys[key].waiting
		c.keys[key].waiting = nil
		if f == nil {
			delete(c.keys, key)
		}
		c.mu.Unlock()
	}
}
