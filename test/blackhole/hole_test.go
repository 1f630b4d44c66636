package blackhole

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/fencedlease/fencedlease/test/suite"
)

// hole is a black hole where the API server calls the webhooks: it takes connections,
// and never answers. Without TLS it reads nothing, so that the API server's handshake
// never ends. With it there is a handshake, the call is read, and that is all.
type hole struct {
	secure atomic.Bool
	fell   atomic.Int64 // connections, each with one call that waits

	listener net.Listener
	tls      *tls.Config
	running  sync.WaitGroup

	mu     sync.Mutex
	open   []net.Conn
	closed bool
}

// openHole digs a hole, until the end of the test at the latest. The manager must not
// be there.
func openHole(w *suite.World) *hole {
	w.T.Helper()
	certificate, err := suite.Cluster.WebhookCertificate()
	w.Must(err)
	// No HTTP/2, which would put all calls on one connection.
	h := &hole{tls: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}}
	var config net.ListenConfig
	h.listener, err = config.Listen(w.Ctx, "tcp", suite.Cluster.WebhookAddress())
	w.Must(err)
	w.T.Cleanup(h.close)
	h.running.Go(h.take)
	return h
}

func (h *hole) take() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		if !h.keep(conn) {
			_ = conn.Close()
			return
		}
		if !h.secure.Load() {
			h.fell.Add(1)
			continue
		}
		h.running.Go(func() {
			server := tls.Server(conn, h.tls)
			if _, err := server.Read(make([]byte, 1)); err == nil {
				h.fell.Add(1)
				_, _ = io.Copy(io.Discard, server)
			}
		})
	}
}

// keep keeps a connection open as long as the hole.
func (h *hole) keep(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, conn)
	return !h.closed
}

// close fills the hole up: what waits there fails at once.
func (h *hole) close() {
	h.mu.Lock()
	h.closed = true
	for _, conn := range h.open {
		_ = conn.Close()
	}
	h.open = nil
	h.mu.Unlock()
	_ = h.listener.Close()
	h.running.Wait()
}

// victims are how many calls throwIn leaves in the hole.
const victims = 2

// throwIn sends an acquisition and a guarded write, and returns when both wait in the
// hole: so the webhooks are in force. They are there until they are let go.
func (h *hole) throwIn(w *suite.World) (letGo func()) {
	w.T.Helper()
	ctx, cancel := context.WithCancel(w.Ctx)
	var waiting sync.WaitGroup
	for _, send := range []func(context.Context, *suite.World) error{fence, guard} {
		before := h.fell.Load()
		waiting.Go(func() {
			err := send(ctx, w)
			for err == nil { // not in force yet
				err = send(ctx, w)
			}
		})
		w.Eventually("a call waits in the hole", func() error {
			if h.fell.Load() == before {
				return errors.New("none does")
			}
			return nil
		})
	}
	return func() {
		cancel()
		waiting.Wait()
	}
}
