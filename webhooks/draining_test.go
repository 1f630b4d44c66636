package webhooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestDrainingTakesItsDelay(t *testing.T) {
	const delay = 10 * time.Second
	type step struct {
		after  time.Duration
		signal bool

		begun, over bool
		exits       int
	}
	for name, tc := range map[string]struct {
		serving bool
		steps   []step
	}{
		"one signal": {serving: true, steps: []step{
			{after: time.Hour},
			{signal: true, begun: true},
			{after: delay - 1, begun: true},
			{after: 1, begun: true, over: true},
		}},
		"a second ends the delay, a third the process": {serving: true, steps: []step{
			{signal: true, begun: true},
			{after: time.Second, signal: true, begun: true, over: true},
			{signal: true, begun: true, over: true, exits: 1},
		}},
		"nobody to wait for": {steps: []step{
			{signal: true, begun: true, over: true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				exits := 0
				d := NewDraining(delay)
				d.exit = func(int) { exits++ }
				d.serving.Store(tc.serving)
				signals := make(chan os.Signal, 3)
				ctx := d.Context(t.Context(), signals)
				for i, step := range tc.steps {
					time.Sleep(step.after)
					if step.signal {
						signals <- syscall.SIGTERM
					}
					synctest.Wait()
					if d.begun.Load() != step.begun || (ctx.Err() != nil) != step.over || exits != step.exits {
						t.Errorf("step %d: begun %t, over %t, %d exits, want %+v", i, d.begun.Load(), ctx.Err() != nil, exits, step)
					}
				}
				if exits == 0 {
					signals <- syscall.SIGTERM // nothing is left running
				}
			})
		})
	}
}

func TestDrainingEndsWithItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		d := NewDraining(time.Hour)
		ctx := d.Context(parent, make(chan os.Signal))
		cancel()
		<-ctx.Done()
		if d.begun.Load() {
			t.Error("it drains")
		}
	})
}

// handlerFunc is an [admission.Handler].
type handlerFunc func(context.Context) admission.Response

func (f handlerFunc) Handle(ctx context.Context, _ admission.Request) admission.Response {
	return f(ctx)
}

// A call that is under way when the draining begins outlives it and the end of the
// server, and its connection ends with the answer.
func TestDrainingAnswersCallsUnderWay(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			draining := NewDraining(50 * time.Millisecond)
			ctx := draining.Context(t.Context(), signals)
			under, proceed := make(chan struct{}, 1), make(chan struct{})
			url, roots := serve(ctx, t, calls("guard", draining, handlerFunc(func(ctx context.Context) admission.Response {
				under <- struct{}{}
				<-proceed
				if ctx.Err() != nil {
					t.Errorf("the context of the call ended: %v", ctx.Err())
				}
				return admission.Allowed("")
			})))
			client := clientOf(t, roots, http2)
			answered := make(chan *http.Response, 1)
			go func() {
				defer close(answered)
				request := review(t.Context(), t, url)
				response, err := client.Do(request)
				if err != nil {
					t.Errorf("the call failed: %v", err)
					return
				}
				_ = response.Body.Close()
				answered <- response
			}()
			<-under
			signals <- syscall.SIGTERM
			<-ctx.Done()
			close(proceed)
			response := <-answered
			if response == nil {
				t.Fatal("no answer")
			}
			if response.StatusCode != http.StatusOK || (response.ProtoMajor == 2) != http2 {
				t.Errorf("%s %s", response.Proto, response.Status)
			}
			if !http2 && !response.Close {
				t.Error("the connection stays open")
			}
		})
	}
}

// While draining, each answer ends its connection, so that the next call may go
// elsewhere; before, connections stay.
func TestDrainingMovesConnections(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			draining := NewDraining(time.Hour)
			url, roots := serve(t.Context(), t, calls("guard", draining, handlerFunc(func(context.Context) admission.Response {
				return admission.Allowed("")
			})))
			client := clientOf(t, roots, http2)
			for i, reused := range []bool{false, true, true, false, false} {
				if i == 2 { // this call still goes where the others went
					draining.begun.Store(true)
				}
				var got httptrace.GotConnInfo
				trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { got = info }}
				response, err := client.Do(review(httptrace.WithClientTrace(t.Context(), trace), t, url))
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if got.Reused != reused {
					t.Errorf("call %d: its connection was reused: %t, want %t", i, got.Reused, reused)
				}
				time.Sleep(20 * time.Millisecond) // GOAWAY follows the answer
			}
		})
	}
}

// clientOf is a client that trusts the authorities and speaks one protocol.
func clientOf(t *testing.T, roots *x509.CertPool, http2 bool) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, Protocols: protocols,
	}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// review is a call as the API server makes it.
func review(ctx context.Context, t *testing.T, url string) *http.Request {
	t.Helper()
	const body = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1"}}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"?timeout=5s", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil
	}
	request.Header.Set("Content-Type", "application/json")
	return request
}

// serve has the webhook server of controller-runtime serve a handler until a context
// ends, and returns its address and the authority of its certificate.
func serve(ctx context.Context, t *testing.T, handler http.Handler) (string, *x509.CertPool) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := freePort(ctx, t)
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: dir})
	server.Register("/guard", handler)
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for started := server.StartedChecker(); started(nil) != nil; time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return "https://127.0.0.1:" + strconv.Itoa(port) + "/guard", roots
}

func freePort(ctx context.Context, t *testing.T) int {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("not an address of TCP: %v", listener.Addr())
	}
	return address.Port
}

func TestDeadline(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"":             handlerTimeout,
		"?timeout=5s":  4 * time.Second,
		"?timeout=2s":  1600 * time.Millisecond,
		"?timeout=30s": handlerTimeout,
		"?timeout=x":   handlerTimeout,
		"?timeout=-1s": handlerTimeout,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://webhook/guard"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if got := deadline(request); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}
