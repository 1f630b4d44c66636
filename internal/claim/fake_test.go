package claim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/claim"
)

const (
	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
	applyType = "application/apply-patch+yaml"

	configMap = "/api/v1/namespaces/prod/configmaps/a"
	custom    = "/apis/example.com/v1/namespaces/prod/accounts/a"
)

// sent is what the API server saw of a request.
type sent struct {
	Method, URI, Type, Body string
	As                      map[string]string // impersonation headers
}

// answer is what the API server says.
type answer struct {
	code int
	body string
	kind string // content type; JSON if empty
}

var done = answer{code: 200, body: `{"metadata":{"resourceVersion":"101"}}`}

// refusal is an answer of the fence to a writer that presented a token, or none.
func refusal(code int, reason fence.Reason, presented, current fence.Token) answer {
	causes := ""
	if presented != fence.None {
		causes = fmt.Sprintf(`{"reason":"PresentedToken","message":"%d"},`, presented)
	}
	return answer{code: code, body: fmt.Sprintf(
		`{"kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"no","details":{"causes":[%s{"reason":"CurrentToken","message":"%d"}]}}`,
		code, reason, causes, current)}
}

// unseen is the refusal of a write in which the fence saw no claim.
var unseen = refusal(428, fence.ReasonRequired, fence.None, 7)

// server plays the API server: it keeps what was sent, and gives its answers in
// turn, then [done] for ever.
type server struct {
	t       *testing.T
	answers []answer
	sent    []sent
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.t.Helper()
	got := sent{Method: req.Method, URI: req.URL.RequestURI(), Type: req.Header.Get("Content-Type")}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if int64(len(body)) != req.ContentLength {
			s.t.Errorf("a body of %d bytes is announced as %d", len(body), req.ContentLength)
		}
		got.Body = string(body)
	}
	for key, values := range req.Header {
		if strings.HasPrefix(key, "Impersonate-") {
			if got.As == nil {
				got.As = map[string]string{}
			}
			got.As[strings.TrimPrefix(key, "Impersonate-")] = strings.Join(values, ",")
		}
	}
	s.sent = append(s.sent, got)

	next := done
	if len(s.answers) > 0 {
		next, s.answers = s.answers[0], s.answers[1:]
	}
	kind := next.kind
	if kind == "" {
		kind = jsonType
	}
	return &http.Response{
		StatusCode: next.code, Header: http.Header{"Content-Type": {kind}},
		Body: io.NopCloser(strings.NewReader(next.body)), Request: req,
	}, nil
}

// source is a Source that keeps what it was told.
type source struct {
	claim         claim.Claim
	err           error
	asked         int
	refused       []fence.Reason
	notByIdentity int

	raise fence.Token // by how much a refusal raises the token
	end   error       // or how it ends the claim
}

func (s *source) Claim(context.Context) (claim.Claim, error) {
	s.asked++
	return s.claim, s.err
}

func (s *source) Refused(_ context.Context, _ claim.Claim, refusal fence.Refusal) {
	s.refused = append(s.refused, refusal.Reason)
	s.claim.Token += s.raise
	s.err = s.end
}

func (s *source) NotByIdentity(claim.Claim) { s.notByIdentity++ }

// anna is who the client is.
func anna(context.Context) (rest.ImpersonationConfig, error) {
	return rest.ImpersonationConfig{UserName: "anna", Groups: []string{"ops"}}, nil
}

// asAnna are the headers in which anna impersonates herself with token 7.
var asAnna = map[string]string{
	"User": "anna", "Group": "ops",
	"Extra-Fencedlease.io%2ftoken": "7",
}

// body is the body of a request; it says whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// newRequest is a request as client-go makes it.
func newRequest(t *testing.T, method, uri, kind, content string) (*http.Request, *body) {
	t.Helper()
	b := &body{Reader: strings.NewReader(content)}
	req, err := http.NewRequestWithContext(t.Context(), method, "https://cluster.example"+uri, b)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(content))
	if content == "" {
		req.Body = nil
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	return req, b
}

// roundTrip sends a request through a transport and returns the code and the body
// of its answer.
func roundTrip(t *testing.T, transport http.RoundTripper, req *http.Request) (int, string) {
	t.Helper()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(content)
}

// annotationsOf are the annotations in a body.
func annotationsOf(t *testing.T, content string) map[string]string {
	t.Helper()
	var object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(content), &object); err != nil {
		t.Fatal(err)
	}
	return object.Metadata.Annotations
}
