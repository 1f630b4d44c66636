package server

import (
	"context"
	"io"
	"net"
	"sync"
)

// Proxy stands between clients and a server, and cuts connections.
type Proxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	wait  sync.WaitGroup
}

// NewProxy starts one in front of an address.
func NewProxy(ctx context.Context, to string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, to: to, conns: map[net.Conn]struct{}{}}
	p.wait.Go(func() { p.serve(ctx) })
	return p, nil
}

// Address is where clients connect to.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

func (p *Proxy) serve(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client] = struct{}{}
		p.mu.Unlock()
		end := func() {
			_, _ = client.Close(), server.Close()
			p.mu.Lock()
			delete(p.conns, client)
			p.mu.Unlock()
		}
		for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
			p.wait.Go(func() {
				defer end()
				_, _ = io.Copy(way[1], way[0])
			})
		}
	}
}

// Cut breaks all connections at once, wherever they are: between a statement and its
// answer, between a COMMIT and its answer.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// Close ends the proxy.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Cut()
	p.wait.Wait()
}
