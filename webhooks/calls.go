package webhooks

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// handlerTimeout ends a call before the API server gives up on it
// (timeoutSeconds: 5 in config/webhook), so that the client gets our reason.
const handlerTimeout = 4 * time.Second

// calls is the way of the API server's calls to a handler: measured, with a deadline
// of their own, and on a connection that ends when this replica does.
func calls(name string, draining *Draining, handler admission.Handler) http.Handler {
	answer := &webhook.Admission{Handler: counted{webhook: name, next: handler}}
	return draining.handler(measured(name, timed(answer)))
}

// timed gives calls a deadline below that of the caller. Nothing else ends them:
// the server's own context ends when the manager does, and a call under way then
// would be refused for no reason of its own.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), deadline(r))
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// deadline leaves the API server a fifth of its timeout, which it sends along.
func deadline(r *http.Request) time.Duration {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return handlerTimeout
	}
	return min(handlerTimeout, timeout/5*4)
}

// measured observes how long calls take, the decoding included.
func measured(name string, next http.Handler) http.Handler {
	duration := callDuration.WithLabelValues(name)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		defer func() { duration.Observe(time.Since(begin).Seconds()) }()
		next.ServeHTTP(w, r)
	})
}

// counted counts what a handler decides.
type counted struct {
	webhook string
	next    admission.Handler
}

// Handle passes the question and the answer through.
func (c counted) Handle(ctx context.Context, req admission.Request) admission.Response {
	response := c.next.Handle(ctx, req)
	decision, reason := decidedAllow, ""
	if !response.Allowed {
		decision, reason = decidedRefuse, reasonMalformed
		if response.Result != nil && response.Result.Reason != "" {
			reason = string(response.Result.Reason)
		}
	}
	decisions.WithLabelValues(c.webhook, string(req.Operation), decision, reason, dryRun(req)).Inc()
	return response
}
