package httpfence_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/store/httpfence"
)

// A term of package leader is one.
var _ httpfence.Term = (*leader.Term)(nil)

// term is one that the test ends.
type term struct {
	token fence.Token
	err   error
}

func (t term) Token() fence.Token { return t.token }
func (t term) Err() error         { return t.err }

// What a client sends as its token, and whether it sends anything.
func TestTransport(t *testing.T) {
	lost := errors.New("the term is over")
	tests := map[string]struct {
		source    httpfence.Source
		variable  string // its value; unset if empty
		header    string // by the caller
		want      string
		wantError string
	}{
		"a term":                              {source: httpfence.OfTerm(term{token: 7}), want: "7"},
		"a term that is over":                 {source: httpfence.OfTerm(term{token: 7, err: lost}), wantError: "nothing was sent: the term is over"},
		"no token":                            {source: httpfence.OfTerm(term{}), wantError: "there is no token"},
		"the environment":                     {source: httpfence.Environment(), variable: "7", want: "7"},
		"an environment that has none":        {source: httpfence.Environment(), wantError: "start the program with kubectl fence run"},
		"an environment that has another one": {source: httpfence.Environment(), variable: "seven", wantError: `FENCING_TOKEN has "seven": a fencing token is`},
		"the caller's own":                    {source: httpfence.OfTerm(term{token: 7}), header: "8", want: "8"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(httpfence.Variable, tc.variable)
			if tc.variable == "" {
				_ = os.Unsetenv(httpfence.Variable) // and set again after the test
			}
			var got []string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = r.Header.Values(httpfence.Header)
			}))
			defer server.Close()
			body := &closing{Reader: strings.NewReader("body")}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			if tc.header != "" {
				r.Header.Set(httpfence.Header, tc.header)
			}
			response, err := (&http.Client{Transport: &httpfence.Transport{Source: tc.source}}).Do(r)
			if err == nil {
				_ = response.Body.Close()
			}
			if tc.wantError == "" && err != nil || tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError)) {
				t.Errorf("it returned %v", err)
			}
			if strings.Join(got, " ") != tc.want || !body.closed {
				t.Errorf("the server got %q, want %q; the body is closed: %t", got, tc.want, body.closed)
			}
			if r.Header.Get(httpfence.Header) != tc.header {
				t.Errorf("the caller's request was changed: %v", r.Header)
			}
		})
	}
}

// closing is a body that knows whether it was closed.
type closing struct {
	*strings.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// An answer that is no refusal of a guard is none.
func TestProblemOf(t *testing.T) {
	tests := map[string]struct {
		media, body string
		want        bool
	}{
		"a refusal":               {"application/problem+json; charset=utf-8", `{"reason": "FencingTokenStale", "status": 500}`, true},
		"another service's":       {"application/problem+json", `{"type": "about:blank", "status": 412}`, false},
		"a reason of its own":     {"application/problem+json", `{"reason": "OutOfCredit"}`, false},
		"JSON of another kind":    {"application/json", `{"reason": "FencingTokenStale"}`, false},
		"no JSON":                 {"application/problem+json", `<html>`, false},
		"a precondition of HTTP":  {"text/plain", `412`, false},
		"without any media types": {"", ``, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			w.Header().Set("Content-Type", tc.media)
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = w.WriteString(tc.body)
			response := w.Result()
			defer func() { _ = response.Body.Close() }()
			problem := httpfence.ProblemOf(response)
			if (problem != nil) != tc.want || problem != nil && problem.Status != http.StatusPreconditionFailed {
				t.Errorf("it is %+v", problem)
			}
		})
	}
}
