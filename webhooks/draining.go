package webhooks

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// errDraining is why a replica that is about to end is not ready.
var errDraining = errors.New("draining: this replica is about to end")

// Draining is how a replica ends without losing a request. Whoever sends requests
// here learns of the end later than we do, so between the signal and the end there
// is a delay: the replica is not ready any more, but answers as before, and asks
// with each answer for a new connection, which then leads to another replica.
//
// A connection that carried nothing during the delay is closed at the end. A client
// that takes it up in that very moment loses its request: HTTP/1.1 has no way to
// avoid that, and clients take up the connections that they used last.
type Draining struct {
	delay time.Duration
	begun atomic.Bool

	// serving says that there may be somebody to wait for.
	serving atomic.Bool

	exit func(code int) // of the process
}

// NewDraining makes one with a delay that is longer than a Service takes to leave
// out a replica that is not ready: about a second, or several in a large cluster.
func NewDraining(delay time.Duration) *Draining {
	return &Draining{delay: delay, exit: os.Exit}
}

// Context returns a context for the manager. The first signal begins the draining,
// and the context ends with the delay. A second signal ends it at once, and a third
// ends the process where it stands.
func (d *Draining) Context(parent context.Context, signals <-chan os.Signal) context.Context {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		defer cancel()
		select {
		case <-signals:
		case <-parent.Done():
			return
		}
		d.wait(signals)
		cancel()
		<-signals
		ctrl.Log.Info("a further signal: the process ends now")
		d.exit(1)
	}()
	return ctx
}

// wait is the time between the first signal and the end.
func (d *Draining) wait(signals <-chan os.Signal) {
	d.begun.Store(true)
	if !d.serving.Load() {
		return
	}
	ctrl.Log.Info("draining: not ready any more, and answering for a while", "delay", d.delay.String())
	timer := time.NewTimer(d.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-signals:
		ctrl.Log.Info("a second signal: the delay ends now")
	}
}

// handler asks for a new connection with each answer while draining. A call that was
// under way when the draining began is answered like that, too.
func (d *Draining) handler(next http.Handler) http.Handler {
	d.serving.Store(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(drainingWriter{w, d}, r)
	})
}

// drainingWriter decides at the time of the answer.
type drainingWriter struct {
	http.ResponseWriter

	draining *Draining
}

// WriteHeader begins the answer.
func (w drainingWriter) WriteHeader(code int) {
	w.mark()
	w.ResponseWriter.WriteHeader(code)
}

// Write begins the answer, unless WriteHeader did.
func (w drainingWriter) Write(data []byte) (int, error) {
	w.mark()
	return w.ResponseWriter.Write(data)
}

// mark closes an HTTP/1.1 connection after this answer. In HTTP/2, Go's server sends
// GOAWAY for it: calls under way are answered, and new ones take a new connection.
func (w drainingWriter) mark() {
	if w.draining.begun.Load() {
		w.Header().Set("Connection", "close")
	}
}
