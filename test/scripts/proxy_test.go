package scripts

import (
	"context"
	"net"
	"net/url"
	"sync"

	"github.com/fencedlease/fencedlease/test/suite"
)

// proxy is a way to the API server that can be cut.
type proxy struct {
	URL string

	target string

	mu   sync.Mutex
	gone bool
	open []net.Conn
}

// newProxy listens until the end of the test.
func newProxy(w *suite.World) *proxy {
	w.T.Helper()
	target, err := url.Parse(suite.Cluster.Admin.Host)
	w.Must(err)
	var config net.ListenConfig
	listener, err := config.Listen(w.Ctx, "tcp", "127.0.0.1:0")
	w.Must(err)
	p := &proxy{URL: "https://" + listener.Addr().String(), target: target.Host}
	w.T.Cleanup(func() {
		p.cut()
		_ = listener.Close()
	})
	go p.serve(w.Ctx, listener)
	return p
}

// cut ends all connections, and those to come.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for _, conn := range p.open {
		_ = conn.Close()
	}
}

// keep notes connections to be cut, and says whether they are still to be served.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		for _, conn := range conns {
			_ = conn.Close()
		}
		return false
	}
	p.open = append(p.open, conns...)
	return true
}

func (p *proxy) serve(ctx context.Context, listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		if !p.keep(client) {
			continue
		}
		var dialer net.Dialer
		server, err := dialer.DialContext(ctx, "tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if p.keep(server) {
			go carry(server, client)
			go carry(client, server)
		}
	}
}

// carry carries bytes until one side ends.
func carry(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}
