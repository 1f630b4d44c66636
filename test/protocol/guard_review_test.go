package protocol

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fencedlease/fencedlease/test/suite"
)

// post sends something to a webhook of the manager that is no request of the API
// server, and returns the answer.
func post(w *suite.World, path, contentType, body string) *admissionv1.AdmissionResponse {
	w.T.Helper()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(suite.Cluster.WebhookCA())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(w.Ctx, http.MethodPost, suite.Cluster.WebhookURL(path), bytes.NewBufferString(body))
	w.Must(err)
	request.Header.Set("Content-Type", contentType)
	response, err := (&http.Client{Transport: transport}).Do(request)
	w.Must(err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		w.T.Fatalf("status %s", response.Status)
	}
	var review admissionv1.AdmissionReview
	w.Must(json.NewDecoder(response.Body).Decode(&review))
	if review.Response == nil {
		w.T.Fatal("no response")
	}
	return review.Response
}

// review is an AdmissionReview with that request.
func review(request string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":` + request + `}`
}

const (
	jsonType = "application/json"
	guarded  = `{"metadata":{"name":"a","labels":{"fencedlease.io/guarded-by":"payments","fencedlease.io/fenced-by":"payments"}}}`
)

// TestReviewThatMakesNoSense: whatever is sent to a webhook is answered, with a
// refusal: 400.
func TestReviewThatMakesNoSense(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	const noObject, undecodable = "the review has no object", "the object in the review cannot be decoded"
	for name, tc := range map[string]struct {
		contentType, body, message string
		paths                      []string // all, by default
	}{
		"not JSON":                 {body: "hello", message: "couldn't get version/kind"},
		"half of it":               {body: review(`{"uid":"1","object":`), message: "json parse error"},
		"empty":                    {body: "", message: "request body is empty"},
		"an empty object":          {body: "{}", message: noObject},
		"a list":                   {body: "[]", message: "cannot unmarshal"},
		"of another kind":          {body: `{"kind":"Pod","apiVersion":"v1"}`, message: noObject},
		"of another type":          {contentType: "text/plain", body: review(`{"uid":"1"}`), message: "expected application/json"},
		"without a request":        {body: review(`null`), message: noObject},
		"with an empty request":    {body: review(`{}`), message: noObject},
		"create, no object":        {body: review(`{"uid":"1","operation":"CREATE"}`), message: noObject},
		"create, null":             {body: review(`{"uid":"1","operation":"CREATE","object":null}`), message: noObject},
		"create, a number":         {body: review(`{"uid":"1","operation":"CREATE","object":5}`), message: undecodable},
		"create, a list":           {body: review(`{"uid":"1","operation":"CREATE","object":[]}`), message: undecodable},
		"metadata is text":         {body: review(`{"uid":"1","operation":"CREATE","object":{"metadata":"x"}}`), message: undecodable},
		"labels are a list":        {body: review(`{"uid":"1","operation":"CREATE","object":{"metadata":{"labels":[]}}}`), message: undecodable},
		"a label is a number":      {body: review(`{"uid":"1","operation":"CREATE","object":{"metadata":{"labels":{"a":1}}}}`), message: undecodable},
		"an annotation is a map":   {body: review(`{"uid":"1","operation":"CREATE","object":{"metadata":{"annotations":{"a":{}}}}}`), message: undecodable},
		"update, neither object":   {body: review(`{"uid":"1","operation":"UPDATE"}`), message: noObject},
		"update, no old object":    {body: review(`{"uid":"1","operation":"UPDATE","object":` + guarded + `}`), message: noObject, paths: []string{"/guard", "/mint", "/lease-check"}},
		"update, no new object":    {body: review(`{"uid":"1","operation":"UPDATE","oldObject":` + guarded + `}`), message: noObject},
		"delete, no old object":    {body: review(`{"uid":"1","operation":"DELETE"}`), message: noObject, paths: []string{"/guard", "/lease-check"}},
		"delete, the wrong object": {body: review(`{"uid":"1","operation":"DELETE","object":` + guarded + `}`), message: noObject, paths: []string{"/guard", "/lease-check"}},
		"another operation":        {body: review(`{"uid":"1","operation":"CONNECT","object":5}`), message: undecodable},
		"deep":                     {body: review(`{"uid":"1","operation":"CREATE","object":` + strings.Repeat(`{"metadata":`, 20000) + `1` + strings.Repeat(`}`, 20000) + `}`), message: "max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.contentType == "" {
				tc.contentType = jsonType
			}
			if tc.paths == nil {
				tc.paths = []string{"/guard", "/stamp", "/mint", "/lease-check"}
			}
			for _, path := range tc.paths {
				got := post(w, path, tc.contentType, tc.body)
				if got.Allowed || got.Result == nil || got.Result.Code != 400 || !strings.Contains(got.Result.Message, tc.message) {
					t.Errorf("%s: allowed %t, %+v; want 400 with %q", path, got.Allowed, got.Result, tc.message)
				}
			}
		})
	}

	// They are all as well as before.
	w.FencedLease("payments")
	leader := w.Pod("leader")
	leader.Acquire("payments", "leader")
	w.Guarded("account", "payments", 1)
	suite.Admitted(t, leader.Modify("account", suite.Balance("1")))
}

// TestReviewThatMakesSense is the twin: the same path of a request, well-formed.
func TestReviewThatMakesSense(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	got := post(w, "/guard", jsonType, review(`{"uid":"1","operation":"CREATE","namespace":"`+w.Namespace+`","object":`+guarded+`}`))
	if got.Allowed || got.UID != "1" || got.Result.Code != 422 || got.Result.Reason != "FencedLeaseNotFound" {
		t.Errorf("%+v", got)
	}
	w.FencedLease("payments")
	got = post(w, "/guard", jsonType, review(`{"uid":"2","operation":"CREATE","namespace":"`+w.Namespace+`","object":`+guarded+`}`))
	if !got.Allowed || got.UID != "2" || len(got.Warnings) != 1 {
		t.Errorf("%+v", got)
	}
}
