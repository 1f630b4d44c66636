package claim_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/internal/claim"
)

// roundTripper is a function as a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// term is a term that a test ends.
type term struct {
	over context.Context
	end  context.CancelCauseFunc
}

func newTerm() term {
	over, end := context.WithCancelCause(context.Background())
	return term{over, end}
}

func (t term) AfterFunc(f func()) func() bool { return context.AfterFunc(t.over, f) }

func (t term) Err() error { return context.Cause(t.over) }

// A write that waits, for a connection or an answer, is cut off when its claim is
// over, whatever its own context says; also one of a kind that is never stamped.
func TestCutOffWithItsClaim(t *testing.T) {
	errOver := errors.New("another leads")
	for _, uri := range []string{configMap, "/api/v1/namespaces/prod/pods/a"} {
		term := newTerm()
		hangs := roundTripper(func(req *http.Request) (*http.Response, error) {
			term.end(errOver)
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		req, _ := newRequest(t, "PUT", uri, jsonType, `{}`)
		resp, err := claim.NewTransport(hangs, &source{claim: claim.Claim{Token: 7, Term: term}}, anna).RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, errOver) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the error is %v", uri, err)
		}
		if req.Context().Err() != nil {
			t.Errorf("%s: the caller's own context is over", uri)
		}
	}
}

// The answer of a write that came in time can be read to its end.
func TestAnswerOutlivesRoundTrip(t *testing.T) {
	term := newTerm()
	defer term.end(nil)
	var sent *http.Request
	answers := roundTripper(func(req *http.Request) (*http.Response, error) {
		sent = req
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: req}, nil
	})
	req, _ := newRequest(t, "PUT", configMap, jsonType, `{}`)
	resp, err := claim.NewTransport(answers, &source{claim: claim.Claim{Token: 7, Term: term}}, anna).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(resp.Body); err != nil || string(content) != "{}" || sent.Context().Err() != nil {
		t.Errorf("read %q, %v; its context says %v", content, err, sent.Context().Err())
	}
	if err := resp.Body.Close(); err != nil || sent.Context().Err() == nil {
		t.Errorf("closed with %v; its context says %v", err, sent.Context().Err())
	}
}

// The answer to a DELETE can be read here, whatever its client would rather have.
func TestDeleteIsAnsweredInJSON(t *testing.T) {
	accept := ""
	answers := roundTripper(func(req *http.Request) (*http.Response, error) {
		accept = req.Header.Get("Accept")
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	})
	req, _ := newRequest(t, "DELETE", configMap, "", "")
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
	resp, err := claim.NewTransport(answers, &source{claim: claim.Claim{Token: 7, ByIdentity: true}}, anna).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if accept != "application/json" || req.Header.Get("Accept") == accept {
		t.Errorf("accepts %q; the caller's request has %q", accept, req.Header.Get("Accept"))
	}
}
