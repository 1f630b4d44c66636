package httpfence_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/store/httpfence"
)

// created is a handler that says what it got.
var created = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Token", httpfence.Token(r.Context()).String())
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "done")
})

// ask sends one request to a handler.
func ask(handler http.Handler, method, path string, tokens ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader("body"))
	for _, token := range tokens {
		r.Header.Add(httpfence.Header, token)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// problemOf is the refusal in an answer.
func problemOf(w *httptest.ResponseRecorder) *httpfence.Problem {
	response := w.Result()
	defer func() { _ = response.Body.Close() }()
	return httpfence.ProblemOf(response)
}

// A mark of 7 on /payments decides.
func TestGuard(t *testing.T) {
	tests := map[string]struct {
		method string // by default, PUT
		path   string // by default, /payments
		tokens []string
		guard  httpfence.Guard
		want   httpfence.Problem // its Status alone if the request is admitted
	}{
		"a newer token":                {tokens: []string{"8"}, want: httpfence.Problem{Status: 201}},
		"the same token":               {tokens: []string{"7"}, want: httpfence.Problem{Status: 201}},
		"an older token, elsewhere":    {path: "/rents", tokens: []string{"6"}, want: httpfence.Problem{Status: 201}},
		"a read":                       {method: "GET", want: httpfence.Problem{Status: 201}},
		"a read with an older token":   {method: "HEAD", tokens: []string{"6"}, want: httpfence.Problem{Status: 201}},
		"an older token, raised early": {tokens: []string{"6"}, guard: httpfence.Guard{Early: true}, want: httpfence.Problem{Status: 412, Reason: "FencingTokenStale", PresentedToken: 6, MarkToken: 7}},
		"a newer token, raised early":  {tokens: []string{"8"}, guard: httpfence.Guard{Early: true}, want: httpfence.Problem{Status: 201}},
		"an older token":               {tokens: []string{"6"}, want: httpfence.Problem{Status: 412, Reason: "FencingTokenStale", PresentedToken: 6, MarkToken: 7}},
		"an older token, of a delete":  {method: "DELETE", tokens: []string{"6"}, want: httpfence.Problem{Status: 412, Reason: "FencingTokenStale", PresentedToken: 6, MarkToken: 7}},
		"an older token, of a read that is fenced": {
			method: "GET", tokens: []string{"6"}, guard: httpfence.Guard{FenceReads: true},
			want: httpfence.Problem{Status: 412, Reason: "FencingTokenStale", PresentedToken: 6, MarkToken: 7},
		},
		"no token":               {want: httpfence.Problem{Status: 428, Reason: "FencingTokenRequired"}},
		"an empty one":           {tokens: []string{""}, want: httpfence.Problem{Status: 422, Reason: "FencingTokenInvalid"}},
		"no number":              {tokens: []string{"seven"}, want: httpfence.Problem{Status: 422, Reason: "FencingTokenInvalid"}},
		"zero":                   {tokens: []string{"0"}, want: httpfence.Problem{Status: 422, Reason: "FencingTokenInvalid"}},
		"a leading zero":         {tokens: []string{"08"}, want: httpfence.Problem{Status: 422, Reason: "FencingTokenInvalid"}},
		"2^53":                   {tokens: []string{"9007199254740992"}, want: httpfence.Problem{Status: 422, Reason: "FencingTokenInvalid"}},
		"2^63-1":                 {tokens: []string{"9223372036854775807"}, want: httpfence.Problem{Status: 422, Reason: "FencingTokenInvalid"}},
		"two tokens":             {tokens: []string{"8", "8"}, want: httpfence.Problem{Status: 422, Reason: "FencingTokenInvalid"}},
		"two tokens in one line": {tokens: []string{"8, 8"}, want: httpfence.Problem{Status: 422, Reason: "FencingTokenInvalid"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.guard.Marks = &httpfence.Memory{}
			if tc.method == "" {
				tc.method = "PUT"
			}
			if tc.path == "" {
				tc.path = "/payments"
			}
			handler := tc.guard.Wrap(created)
			if response := ask(handler, "PUT", "/payments", "7"); response.Code != http.StatusCreated {
				t.Fatalf("the mark is not raised: %d", response.Code)
			}
			response := ask(handler, tc.method, tc.path, tc.tokens...)
			if response.Code != tc.want.Status {
				t.Errorf("the code is %d, want %d", response.Code, tc.want.Status)
			}
			problem := problemOf(response)
			if tc.want.Reason == "" {
				if problem != nil {
					t.Errorf("the answer is %v", problem)
				}
				if tc.method != "GET" && tc.method != "HEAD" && response.Header().Get("X-Token") != tc.tokens[0] {
					t.Errorf("the handler had the token %s", response.Header().Get("X-Token"))
				}
				return
			}
			if problem == nil {
				t.Fatal("the answer has no problem")
			}
			if problem.Title == "" || problem.Detail == "" || problem.Type != "tag:fencedlease.io,2026:"+string(tc.want.Reason) {
				t.Errorf("the answer is %+v", problem)
			}
			problem.Type, problem.Title, problem.Detail = "", "", ""
			tc.want.Resource = tc.path
			if diff := cmp.Diff(&tc.want, problem); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a client of another language reads.
func TestProblemInJSON(t *testing.T) {
	handler := httpfence.Guard{Marks: &httpfence.Memory{}, Resource: func(*http.Request) string { return "ledger" }}.Wrap(created)
	ask(handler, "POST", "/a", "7")
	response := ask(handler, "POST", "/b", "6")
	if got := response.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("the media type is %s", got)
	}
	var got map[string]any
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "tag:fencedlease.io,2026:FencingTokenStale", "title": "The fencing token is stale", "status": 412.0, "reason": "FencingTokenStale",
		"detail":   `token 6 is stale: "ledger" has been worked on with token 7. You are no longer the leader: stop, or lead again and work it out anew`,
		"resource": "ledger", "presentedToken": 6.0, "markToken": 7.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// failing are marks that cannot be raised, or not stored.
type failing struct{ err error }

func (f failing) Hold(context.Context, string, fence.Token, func(context.Context) error) error {
	return f.err
}

// What goes wrong with the marks is for the service to know, not for its clients.
func TestGuardWithoutMarks(t *testing.T) {
	tests := map[string]struct {
		err       error
		wantCode  int
		wantRetry string
		wantTold  bool
	}{
		"no connection":     {errors.New("secret-host: no route"), 503, "1", true},
		"an unknown commit": {errors.Join(httpfence.ErrUnknown, errors.New("secret-host: EOF")), 500, "", true},
		"no such name":      {httpfence.ErrResource, 422, "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var told error
			handler := httpfence.Guard{Marks: failing{tc.err}, Error: func(_ context.Context, err error) { told = err }}.Wrap(created)
			response := ask(handler, "PUT", "/payments", "7")
			if response.Code != tc.wantCode || response.Header().Get("Retry-After") != tc.wantRetry {
				t.Errorf("the answer is %d, with Retry-After %q", response.Code, response.Header().Get("Retry-After"))
			}
			if problem := problemOf(response); problem == nil || strings.Contains(problem.String(), "secret") {
				t.Errorf("the problem is %v", problem)
			}
			if errors.Is(told, tc.err) != tc.wantTold {
				t.Errorf("the service was told %v", told)
			}
		})
	}
}

// A handler's answer arrives as it is, whatever it is.
func TestGuardPassesAnswersOn(t *testing.T) {
	handler := httpfence.Guard{Marks: &httpfence.Memory{}}.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/implied" {
			return
		}
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.WriteHeader(http.StatusEarlyHints)
		http.Error(w, "no such account", http.StatusNotFound)
		w.WriteHeader(http.StatusOK) // too late
		w.Header().Set("X-Late", "1")
	}))
	response := ask(handler, "PUT", "/explicit", "7")
	body := response.Body.String()
	if response.Code != http.StatusNotFound || body != "no such account\n" || len(response.Header().Values("X-Two")) != 2 || response.Header().Get("X-Late") != "" {
		t.Errorf("the answer is %d, %v, %q", response.Code, response.Header(), body)
	}
	if response := ask(handler, "PUT", "/implied", "7"); response.Code != http.StatusOK {
		t.Errorf("the answer is %d", response.Code)
	}
}

// While one request works, an older one waits, and is stale then.
func TestGuardHoldsTheMark(t *testing.T) {
	working, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	handler := httpfence.Guard{Marks: &httpfence.Memory{}}.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(working) })
		<-finish
	}))
	codes := make(chan int, 2)
	go func() { codes <- ask(handler, "PUT", "/payments", "7").Code }()
	<-working
	go func() { codes <- ask(handler, "PUT", "/payments", "6").Code }()
	select {
	case code := <-codes:
		t.Fatalf("an answer came too early: %d", code)
	case <-time.After(50 * time.Millisecond):
	}
	// Whoever goes away does not wait on.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, "PUT", "/payments", nil)
	r.Header.Set(httpfence.Header, "8")
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("one that is gone got %d", w.Code)
	}
	close(finish)
	if a, b := <-codes, <-codes; a+b != 200+412 {
		t.Errorf("the answers are %d and %d", a, b)
	}
}

// A panic passes on, and lets go of the mark.
func TestGuardOnAPanic(t *testing.T) {
	calls := 0
	handler := httpfence.Guard{Marks: &httpfence.Memory{}}.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if calls++; calls == 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
				t.Error("the panic did not pass on")
			}
		}()
		ask(handler, "PUT", "/payments", "7")
	}()
	if response := ask(handler, "PUT", "/payments", "7"); response.Code != http.StatusOK {
		t.Errorf("the answer is %d", response.Code)
	}
}
