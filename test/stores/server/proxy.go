package server

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
)

// Proxy stands between clients and a server, and cuts connections.
type Proxy struct {
	// Commits is the share of commits, from 0 to 1, that it cuts: half of them
	// before the server gets them, half before the client gets the answer. To be set
	// before clients connect.
	Commits float64

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
				if way[0] == client {
					p.copyCommits(way[1], way[0])
					return
				}
				_, _ = io.Copy(way[1], way[0])
			})
		}
	}
}

// copyCommits copies what a client sends, and ends in the middle of some commits: it finds
// them as the drivers send them, in one packet.
func (p *Proxy) copyCommits(server io.Writer, client io.ReadCloser) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		cut := isCommit(buffer[:n]) && rand.Float64() < p.Commits
		if cut {
			_ = client.Close() // first, so that no answer gets through
		}
		if cut && rand.IntN(2) == 0 {
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil || cut {
			return
		}
	}
}

// isCommit says whether a packet has a COMMIT, which is not the word autocommit.
func isCommit(packet []byte) bool {
	packet = bytes.ToLower(packet)
	return bytes.Contains(packet, []byte("commit")) && !bytes.Contains(packet, []byte("autocommit"))
}

// Cut breaks one connection, wherever it is.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns { // in any order
		_ = conn.Close()
		return
	}
}

// Close ends the proxy, and all connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.wait.Wait()
}
