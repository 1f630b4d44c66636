package httpfence

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/fencedlease/fencedlease/fence"
)

// Guard is middleware that admits a request only with a token that is not stale.
type Guard struct {
	// Marks are the marks. Required.
	Marks Marks

	// Resource names what a request works on: what shares one mark. By default it is the
	// path of the URL. Name what one leader leads, not what one request changes.
	Resource func(*http.Request) string

	// Safe methods (GET, HEAD, OPTIONS, TRACE) pass without a token, unless this is set.
	FenceReads bool

	// Early raises the mark before the handler is called, and does not hold it: for
	// handlers that take long, or stream. A newer token may get past the mark while the
	// handler still works, so the handler must fence its own writes.
	Early bool

	// Error is told of errors of the marks, which clients are not told, with the
	// request's context. By default nobody is.
	Error func(context.Context, error)
}

// errRefused says that a handler has answered with an error, so its work does not count.
var errRefused = errors.New("the handler answered with an error")

// Wrap puts a handler behind the guard.
//
// While the mark is held, unless [Guard.Early], the answer is kept in memory, and sent once
// the work is stored. If the handler answers with a code of 400 or more, nothing is
// stored in the transaction of [SQL], and the answer is sent as it is. A panic passes on,
// and stores nothing either.
func (g Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.FenceReads && safe(r.Method) {
			next.ServeHTTP(w, r)
			return
		}
		resource := r.URL.Path
		if g.Resource != nil {
			resource = g.Resource(r)
		}
		token, refused := presented(r, resource)
		if refused != nil {
			refused.write(w)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), tokenKey{}, token))
		if g.Early {
			if g.hold(w, r, resource, token, func(context.Context) error { return nil }) {
				next.ServeHTTP(w, r)
			}
			return
		}
		kept := answer{header: http.Header{}}
		if g.hold(w, r, resource, token, func(ctx context.Context) error {
			next.ServeHTTP(&kept, r.WithContext(ctx))
			if kept.code >= http.StatusBadRequest {
				return errRefused
			}
			return nil
		}) {
			kept.send(w)
		}
	})
}

// hold does the work under the mark, and answers itself if that failed.
func (g Guard) hold(w http.ResponseWriter, r *http.Request, resource string, token fence.Token, work func(context.Context) error) (ok bool) {
	err := g.Marks.Hold(r.Context(), resource, token, work)
	if err == nil || errors.Is(err, errRefused) {
		return true
	}
	problem := Problem{Resource: resource, PresentedToken: token}
	stale := (*StaleError)(nil)
	switch {
	case errors.As(err, &stale):
		problem.Status, problem.Reason, problem.MarkToken = http.StatusPreconditionFailed, fence.ReasonStale, stale.Mark
		problem.Detail = fmt.Sprintf("token %s is stale: %q has been worked on with token %s. You are no longer the leader: stop, or lead again and work it out anew",
			token, resource, stale.Mark)
		problem.write(w)
		return false
	case errors.Is(err, ErrResource):
		problem.Status, problem.Reason = http.StatusUnprocessableEntity, fence.ReasonInvalid
		problem.Detail = err.Error()
		problem.write(w)
		return false
	case errors.Is(err, ErrUnknown):
		problem.Status, problem.Reason = http.StatusInternalServerError, fence.ReasonUnavailable
		problem.Detail = "it is not known whether the work was stored: read what is there"
	default:
		problem.Status, problem.Reason = http.StatusServiceUnavailable, fence.ReasonUnavailable
		problem.Detail = "the mark cannot be raised now; nothing was done: try again"
		w.Header().Set("Retry-After", "1") // seconds
	}
	if g.Error != nil {
		g.Error(r.Context(), fmt.Errorf("fence of %q: %w", resource, err))
	}
	problem.write(w)
	return false
}

// presented is the token of a request, or why there is none.
func presented(r *http.Request, resource string) (fence.Token, *Problem) {
	values := r.Header.Values(Header)
	switch {
	case len(values) == 0:
		return fence.None, &Problem{
			Status: http.StatusPreconditionRequired, Reason: fence.ReasonRequired, Resource: resource,
			Detail: fmt.Sprintf("%q is fenced: present your token in the header %s", resource, Header),
		}
	case len(values) > 1:
		return fence.None, &Problem{
			Status: http.StatusUnprocessableEntity, Reason: fence.ReasonInvalid, Resource: resource,
			Detail: fmt.Sprintf("the header %s stands there %d times: present one token", Header, len(values)),
		}
	}
	token, err := fence.ParseToken(values[0])
	if err != nil {
		return fence.None, &Problem{
			Status: http.StatusUnprocessableEntity, Reason: fence.ReasonInvalid, Resource: resource,
			Detail: fmt.Sprintf("the header %s has %.64q: %v", Header, values[0], err),
		}
	}
	return token, nil
}

// safe says whether a method is a safe one: RFC 9110, section 9.2.1.
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// tokenKey is the key of the token in a context.
type tokenKey struct{}

// Token is the token that a request behind a [Guard] has presented and that was admitted,
// for a handler that fences rows of its own, or calls another service; else [fence.None].
func Token(ctx context.Context) fence.Token {
	token, _ := ctx.Value(tokenKey{}).(fence.Token)
	return token
}
