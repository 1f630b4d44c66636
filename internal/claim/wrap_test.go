package claim_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/internal/claim"
)

const reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

// cluster is an API server of its own address that knows who asks, and keeps the
// requests. The first reviews may fail.
type cluster struct {
	*httptest.Server

	mu          sync.Mutex
	requests    []*http.Request
	bodies      []string
	failReviews int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.requests, c.bodies = append(c.requests, req), append(c.bodies, string(body))

	var object any = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	switch {
	case req.URL.Path == reviews && c.failReviews > 0:
		c.failReviews--
		http.Error(w, "not now", http.StatusInternalServerError)
		return
	case req.URL.Path == reviews:
		object = authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{
			Username: "system:serviceaccount:prod:anna", UID: "uid-of-anna",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:prod", "system:authenticated"},
			Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-uid": {"u1"},
				"authentication.kubernetes.io/scopes":  {"a", "b"},
			},
		}}}
	case req.Method == http.MethodPost:
		object = corev1.ConfigMap{}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(object); err != nil {
		panic(err)
	}
}

// impersonation are the headers of a request that say as whom it is made.
func impersonation(req *http.Request) http.Header {
	headers := http.Header{}
	for key, values := range req.Header {
		if strings.HasPrefix(key, "Impersonate-") {
			headers[key] = values
		}
	}
	return headers
}

func TestWrappedClientImpersonates(t *testing.T) {
	cases := map[string]struct {
		config      rest.ImpersonationConfig
		wantReviews int
		want        http.Header
	}{
		"itself": {
			wantReviews: 1,
			want: http.Header{
				"Impersonate-User":                         {"system:serviceaccount:prod:anna"},
				"Impersonate-Extra-Fencedlease.io%2ftoken": {"7"},
			},
		},
		"whom its configuration impersonates already": {
			config: rest.ImpersonationConfig{
				UserName: "bert", UID: "uid-of-bert", Groups: []string{"dev"},
				Extra: map[string][]string{"fencedlease.io/token": {"6"}, "reason": {"test"}},
			},
			want: http.Header{
				"Impersonate-User":                         {"bert"},
				"Impersonate-Uid":                          {"uid-of-bert"},
				"Impersonate-Group":                        {"dev"},
				"Impersonate-Extra-Reason":                 {"test"},
				"Impersonate-Extra-Fencedlease.io%2ftoken": {"7"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			config := &rest.Config{Host: c.URL, BearerToken: "secret", Impersonate: tc.config}
			client, err := kubernetes.NewForConfig(claim.Wrap(config, claim.Fixed(7)))
			if err != nil {
				t.Fatal(err)
			}
			const deletes = 2
			for range deletes {
				if err := client.CoreV1().ConfigMaps("prod").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if config.WrapTransport != nil || config.ContentType != "" {
				t.Error("the caller's config was changed")
			}
			gotReviews := 0
			for _, req := range c.requests {
				if got := req.Header.Get("Authorization"); got != "Bearer secret" {
					t.Errorf("authorization %q", got)
				}
				if req.URL.Path == reviews {
					gotReviews++
					continue
				}
				if diff := cmp.Diff(tc.want, impersonation(req)); diff != "" {
					t.Errorf("as (-want,+got):\n%s", diff)
				}
			}
			if gotReviews != tc.wantReviews || len(c.requests) != deletes+tc.wantReviews {
				t.Errorf("%d requests, of which %d reviews; want %d", len(c.requests), gotReviews, tc.wantReviews)
			}
		})
	}
}

// Around a whole transport, the client is whom its configuration impersonates.
func TestTransportAroundAnImpersonatingOne(t *testing.T) {
	c := newCluster(t)
	config := &rest.Config{Host: c.URL, Impersonate: rest.ImpersonationConfig{UserName: "bert"}}
	whole, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, _ := newRequest(t, http.MethodDelete, configMap, "", "")
	req.URL.Scheme, req.URL.Host = "http", strings.TrimPrefix(c.URL, "http://")
	roundTrip(t, claim.NewTransport(whole, claim.Fixed(7), claim.WhoAmI(config)), req)

	if len(c.requests) != 2 {
		t.Fatalf("%d requests, want a review and the write", len(c.requests))
	}
	review, write := impersonation(c.requests[0]), impersonation(c.requests[1])
	if diff := cmp.Diff(http.Header{"Impersonate-User": {"bert"}}, review); diff != "" {
		t.Errorf("the review, as (-want,+got):\n%s", diff)
	}
	// What the review says is who the client is; no second user is added to it.
	if diff := cmp.Diff([]string{"system:serviceaccount:prod:anna"}, write["Impersonate-User"]); diff != "" {
		t.Errorf("the write, as (-want,+got):\n%s", diff)
	}
}

// A typed client of Kubernetes' own kinds would send protobuf.
func TestWrappedClientSpeaksJSON(t *testing.T) {
	c := newCluster(t)
	client, err := kubernetes.NewForConfig(claim.Wrap(&rest.Config{Host: c.URL}, claim.Fixed(7)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("prod").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(c.requests) != 1 || c.requests[0].Header.Get("Accept") != "application/json" {
		t.Fatalf("%d requests; want one that accepts JSON only", len(c.requests))
	}
	if got := annotationsOf(t, c.bodies[0])["fencedlease.io/token"]; got != "7" {
		t.Errorf("the token is %q", got)
	}
}

func TestWhoAmIRemembersSuccessOnly(t *testing.T) {
	c := newCluster(t)
	c.failReviews = 1
	self := claim.WhoAmI(&rest.Config{Host: c.URL})
	if got, err := self(t.Context()); err == nil {
		t.Fatalf("a failed review made it %+v", got)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := self(t.Context()); err != nil || got.UserName != "system:serviceaccount:prod:anna" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	if got := len(c.requests); got != 2 {
		t.Errorf("asked %d times, want 2", got)
	}
}

func TestWhoAmIEndsWithItsContext(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := claim.WhoAmI(&rest.Config{Host: c.URL})(ctx); err == nil {
		t.Errorf("%+v", got)
	}
}

// client-go reaches the connections of a client through its transports.
func TestTransportShowsWhatItWraps(t *testing.T) {
	next := &server{t: t}
	wrapper, ok := claim.NewTransport(next, claim.Fixed(7), anna).(interface{ WrappedRoundTripper() http.RoundTripper })
	if !ok || wrapper.WrappedRoundTripper() != next {
		t.Error("the transport below is out of reach")
	}
}
