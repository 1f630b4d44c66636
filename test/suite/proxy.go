package suite

import (
	"context"
	"net"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// Way is a client's way to the API server, which a test can cut.
type Way struct {
	url, target string

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool
}

// Way listens on the loopback interface until the end of the test.
func (w *World) Way() *Way {
	w.T.Helper()
	target, err := url.Parse(w.cluster.Admin.Host)
	w.Must(err)
	var config net.ListenConfig
	listener, err := config.Listen(w.Ctx, "tcp", "127.0.0.1:0")
	w.Must(err)
	way := &Way{url: "https://" + listener.Addr().String(), target: target.Host, open: map[net.Conn]bool{}}
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
	this.Host = w.url
	return this
}

// Cut ends all connections, and each new one as it comes.
func (w *Way) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for conn := range w.open {
		_ = conn.Close()
	}
}

// Mend lets connections through again.
func (w *Way) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

func (w *Way) serve(ctx context.Context, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		var dialer net.Dialer
		server, err := dialer.DialContext(ctx, "tcp", w.target)
		if err != nil || !w.keep(conn, server) {
			_ = conn.Close()
			if server != nil {
				_ = server.Close()
			}
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
	if w.cut {
		return false
	}
	for _, end := range ends {
		w.open[end] = true
	}
	return true
}

// copy carries bytes until one side ends.
func (w *Way) copy(to, from net.Conn) {
	defer func() {
		_, _ = to.Close(), from.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, from)
		delete(w.open, to)
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}
