package outage

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// A call that waits for its live read when the manager ends gets its answer: neither
// the end of the manager nor that of its watches, which comes first, refuses it.
func TestCallsUnderWayOutliveTheManager(t *testing.T) {
	w := suite.New(t)
	way := newSlowWay(w)
	manager := runManager(w, cluster.ManagerOptions{
		APIServer: way.url, ExtraArgs: []string{"--leader-elect=false", "--shutdown-delay=0s"},
	})
	w.FencedLease("payments")
	pod := w.Pod("worker").Impatient()
	pod.Acquire("payments", "worker")
	w.Guarded("account-99", "payments", 1)
	w.Guarded("account-100", "payments", 1)

	// Nothing that is asked of the API server arrives there for now.
	release := way.hold()
	answers := make(chan error, 2)
	for _, name := range []string{"account-99", "account-100"} {
		go func() {
			answers <- pod.Modify(name, suite.Balance("1"), suite.Annotation(v1alpha1.AnnotationWrite, "1/a"))
		}()
	}
	w.Eventually("the calls are under way", func() error {
		families, err := manager.Metrics(w.Ctx)
		w.Must(err)
		for _, metric := range families["controller_runtime_webhook_requests_in_flight"].GetMetric() {
			if metric.GetLabel()[0].GetValue() == "/guard" {
				return differ(metric.GetGauge().GetValue(), 2)
			}
		}
		return errors.New("there is no such metric")
	})

	ended := make(chan error, 1)
	go func() { ended <- manager.Stop(w.Ctx) }()
	w.Eventually("the watches have ended", func() error {
		if !strings.Contains(manager.Log(), "Stopping and waiting for webhooks") {
			return errors.New("not yet")
		}
		return nil
	})
	release()
	for range 2 {
		suite.Admitted(t, <-answers)
	}
	if err := <-ended; err != nil {
		t.Errorf("the manager ended with %v", err)
	}
}

// slowWay leads to the API server. What is held up on it arrives later.
type slowWay struct {
	url string

	mu   sync.Mutex
	gate chan struct{} // closed while the way is open
}

func newSlowWay(w *suite.World) *slowWay {
	w.T.Helper()
	target, err := url.Parse(w.Admin.Config.Host)
	w.Must(err)
	var config net.ListenConfig
	listener, err := config.Listen(w.Ctx, "tcp", "127.0.0.1:0")
	w.Must(err)
	open := make(chan struct{})
	close(open)
	way := &slowWay{url: "https://" + listener.Addr().String(), gate: open}
	w.T.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var dialer net.Dialer
			server, err := dialer.DialContext(w.Ctx, "tcp", target.Host)
			if err != nil {
				_ = conn.Close()
				continue
			}
			go pipe(conn, server)
			go pipe(heldUp{server, way}, conn)
		}
	}()
	return way
}

func pipe(to io.WriteCloser, from io.ReadCloser) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

// hold holds up what is sent to the API server until the function it returns is called.
func (s *slowWay) hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return func() { close(gate) }
}

// heldUp is a connection of the way, to write to.
type heldUp struct {
	io.WriteCloser

	way *slowWay
}

// Write waits while the way is held up.
func (h heldUp) Write(data []byte) (int, error) {
	h.way.mu.Lock()
	gate := h.way.gate
	h.way.mu.Unlock()
	<-gate
	return h.WriteCloser.Write(data)
}
