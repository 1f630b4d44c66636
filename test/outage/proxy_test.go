package outage

import (
	"context"
	"net"
	"net/url"
	"sync"

	"github.com/fencedlease/fencedlease/test/suite"
)

// proxy is the way from the manager to the API server, which can be cut.
type proxy struct {
	URL string

	listener net.Listener
	target   string

	mu    sync.Mutex
	state state
	open  map[net.Conn]bool
}

// state is what becomes of connections.
type state int

const (
	through state = iota
	refused       // they are closed at once
	silent        // they stay open, and nothing comes through
)

// newProxy listens until the end of the test.
func newProxy(w *suite.World) *proxy {
	w.T.Helper()
	target, err := url.Parse(suite.Cluster.Admin.Host)
	w.Must(err)
	var config net.ListenConfig
	listener, err := config.Listen(w.Ctx, "tcp", "127.0.0.1:0")
	w.Must(err)
	p := &proxy{URL: "https://" + listener.Addr().String(), listener: listener, target: target.Host, open: map[net.Conn]bool{}}
	w.T.Cleanup(func() {
		p.set(refused)
		_ = listener.Close()
	})
	go p.serve(w.Ctx)
	return p
}

// set says what becomes of connections; those that are open end, or fall silent.
func (p *proxy) set(s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	if s == refused {
		for conn := range p.open {
			_ = conn.Close()
		}
	}
}

func (p *proxy) get() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *proxy) serve(ctx context.Context) {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.get() == refused {
			_ = conn.Close()
			continue
		}
		var dialer net.Dialer
		server, err := dialer.DialContext(ctx, "tcp", p.target)
		if err != nil {
			_ = conn.Close()
			continue
		}
		p.mu.Lock()
		p.open[conn], p.open[server] = true, true
		p.mu.Unlock()
		go p.copy(server, conn)
		go p.copy(conn, server)
	}
}

// copy carries bytes until one side ends. In silence they are dropped: what was
// lost on the way does not arrive late, so that connection ends with the silence.
func (p *proxy) copy(to, from net.Conn) {
	defer func() {
		_, _ = to.Close(), from.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, to)
		delete(p.open, from)
	}()
	buffer := make([]byte, 32<<10)
	lost := false
	for {
		n, err := from.Read(buffer)
		if p.get() == silent {
			lost = true
		} else if lost {
			return
		} else if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
			return
		}
		if err != nil {
			return
		}
	}
}
