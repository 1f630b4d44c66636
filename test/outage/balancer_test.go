package outage

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

const (
	probePeriod = 100 * time.Millisecond

	// endpointsLag is between the moment at which a replica says whether it is ready
	// and the one at which new connections follow.
	endpointsLag = time.Second
)

// balancer stands for a Service: it takes connections at the address that the API
// server calls and leads each to any replica that was ready a while ago, at random. It does
// not try another replica, and leaves open connections alone.
type balancer struct {
	replicas []*cluster.Manager
	taken    atomic.Int64 // connections

	mu    sync.Mutex
	ready []*cluster.Manager // as new connections see it
	open  map[net.Conn]bool
	to    map[*cluster.Manager]int // open connections
}

// balance serves until the end of the test.
func balance(w *suite.World, c *cluster.Cluster, replicas []*cluster.Manager) *balancer {
	w.T.Helper()
	b := &balancer{replicas: replicas, open: map[net.Conn]bool{}, to: map[*cluster.Manager]int{}}
	var config net.ListenConfig
	listener, err := config.Listen(w.Ctx, "tcp", c.WebhookAddress())
	w.Must(err)
	ctx, cancel := context.WithCancel(w.Ctx)
	var running sync.WaitGroup
	w.T.Cleanup(func() {
		cancel()
		_ = listener.Close()
		b.closeAll()
		running.Wait()
	})
	running.Go(func() { b.probe(ctx) })
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { b.carry(ctx, conn) })
		}
	})
	return b
}

// probe looks who is ready, and has new connections follow later.
func (b *balancer) probe(ctx context.Context) {
	type observation struct {
		at    time.Time
		ready []*cluster.Manager
	}
	var pending []observation
	ticker := time.NewTicker(probePeriod)
	defer ticker.Stop()
	for {
		now := observation{at: time.Now()}
		for _, replica := range b.replicas {
			if replica.Ready(ctx) == nil {
				now.ready = append(now.ready, replica)
			}
		}
		pending = append(pending, now)
		for len(pending) > 0 && time.Since(pending[0].at) >= endpointsLag {
			b.mu.Lock()
			b.ready = pending[0].ready
			b.mu.Unlock()
			pending = pending[1:]
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// serves says whether new connections may be led to a replica.
func (b *balancer) serves(replica *cluster.Manager) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.ready, replica)
}

// busiest is the replica with the most open connections.
func (b *balancer) busiest() *cluster.Manager {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.MaxFunc(b.replicas, func(x, y *cluster.Manager) int { return b.to[x] - b.to[y] })
}

// pick is the replica for the next connection; nil if none is ready.
func (b *balancer) pick() *cluster.Manager {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return nil
	}
	return b.ready[rand.IntN(len(b.ready))]
}

// carry leads one connection to a replica until one of the two ends it.
func (b *balancer) carry(ctx context.Context, client net.Conn) {
	b.taken.Add(1)
	defer func() { _ = client.Close() }()
	replica := b.pick()
	if replica == nil {
		return
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", replica.WebhookAddress())
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !b.keep(replica, client, server) {
		return
	}
	defer b.forget(replica, client, server)
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		if half, ok := to.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

func (b *balancer) keep(replica *cluster.Manager, ends ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		return false
	}
	for _, end := range ends {
		b.open[end] = true
	}
	b.to[replica]++
	return true
}

func (b *balancer) forget(replica *cluster.Manager, ends ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, end := range ends {
		delete(b.open, end)
	}
	b.to[replica]--
}

func (b *balancer) closeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.open {
		_ = conn.Close()
	}
	b.open = nil
}
