package suite

import (
	"context"
	"net"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// Way is somebody's way to the API server, which a test can cut.
type Way struct {
	URL string // of the API server, this way

	target string

	mu    sync.Mutex
	state wayState
	open  map[net.Conn]bool
}

// wayState is what becomes of connections.
type wayState int

const (
	wayOpen   wayState = iota
	wayCut             // they are closed at once
	waySilent          // they stay open, and nothing comes through
)

// Way listens on the loopback interface until the end of the test.
func (w *World) Way() *Way {
	w.T.Helper()
	target, err := url.Parse(w.cluster.Admin.Host)
	w.Must(err)
	var config net.ListenConfig
	listener, err := config.Listen(w.Ctx, "tcp", "127.0.0.1:0")
	w.Must(err)
	way := &Way{URL: "https://" + listener.Addr().String(), target: target.Host, open: map[net.Conn]bool{}}
	w.T.Cleanup(func() {
		way.Cut()
		_ = listener.Close()
	})
	go way.serve(w.Ctx, listener)
	return way
}

// Of is a config that reaches the API server this way.
func (w *Way) Of(config *rest.Config) *rest.Config {
	this := rest.CopyConfig(config)
	this.Host = w.URL
	return this
}

// Cut ends all connections, and each new one as it comes.
func (w *Way) Cut() { w.set(wayCut) }

// Silence lets connections stay open, and nothing through.
func (w *Way) Silence() { w.set(waySilent) }

// Mend lets connections through again.
func (w *Way) Mend() { w.set(wayOpen) }

func (w *Way) set(state wayState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
	if state == wayCut {
		for conn := range w.open {
			_ = conn.Close()
		}
	}
}

func (w *Way) get() wayState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *Way) serve(ctx context.Context, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		var dialer net.Dialer
		server, err := dialer.DialContext(ctx, "tcp", w.target)
		if err != nil {
			_ = conn.Close()
			continue
		}
		if !w.keep(conn, server) {
			_, _ = conn.Close(), server.Close()
			continue
		}
		go w.copy(server, conn)
		go w.copy(conn, server)
	}
}

// keep notes an open connection, unless the way is cut.
func (w *Way) keep(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == wayCut {
		return false
	}
	for _, end := range ends {
		w.open[end] = true
	}
	return true
}

// copy carries bytes until one side ends. In silence they are dropped: what was
// lost on the way does not arrive late, so that connection ends with the silence.
func (w *Way) copy(to, from net.Conn) {
	defer func() {
		_, _ = to.Close(), from.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, from)
		delete(w.open, to)
	}()
	buffer := make([]byte, 32<<10)
	lost := false
	for {
		n, err := from.Read(buffer)
		if w.get() == waySilent {
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
