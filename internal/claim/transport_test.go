package claim_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/claim"
)

// What no guard can stop goes out as it came. What a label cannot reach does too,
// but not after the end of a term.
func TestSentAsItIs(t *testing.T) {
	cases := map[string]struct {
		method, uri string
		wantAsked   int
	}{
		"a read":                       {method: "GET", uri: configMap},
		"no resource":                  {method: "POST", uri: "/metrics"},
		"a review of access":           {method: "POST", uri: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		"a review of who it is":        {method: "POST", uri: "/apis/authentication.k8s.io/v1/selfsubjectreviews"},
		"an Event":                     {method: "POST", uri: "/apis/events.k8s.io/v1/namespaces/prod/events"},
		"an Event of the core group":   {method: "PATCH", uri: "/api/v1/namespaces/prod/events/a"},
		"a Lease":                      {method: "PUT", uri: "/apis/coordination.k8s.io/v1/namespaces/prod/leases/a"},
		"a Pod":                        {method: "POST", uri: "/api/v1/namespaces/prod/pods", wantAsked: 1},
		"the status of a Node":         {method: "PATCH", uri: "/api/v1/nodes/a/status", wantAsked: 1},
		"a ReplicaSet":                 {method: "DELETE", uri: "/apis/apps/v1/namespaces/prod/replicasets/a", wantAsked: 1},
		"an EndpointSlice":             {method: "PUT", uri: "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices/a", wantAsked: 1},
		"a FencedLease":                {method: "PUT", uri: "/apis/fencedlease.io/v1alpha1/namespaces/prod/fencedleases/a", wantAsked: 1},
		"a subresource without labels": {method: "PUT", uri: "/apis/apps/v1/namespaces/prod/deployments/a/scale", wantAsked: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api, src := &server{t: t}, &source{claim: claim.Claim{Token: 7}}
			req, _ := newRequest(t, tc.method, tc.uri, jsonType, `{"metadata": {}}`)
			roundTrip(t, claim.NewTransport(api, src, anna), req)

			want := []sent{{Method: tc.method, URI: tc.uri, Type: jsonType, Body: `{"metadata": {}}`}}
			if diff := cmp.Diff(want, api.sent); diff != "" {
				t.Errorf("sent (-want,+got):\n%s", diff)
			}
			if src.asked != tc.wantAsked {
				t.Errorf("the claim was asked for %d times, want %d", src.asked, tc.wantAsked)
			}
		})
	}
}

func TestCarries(t *testing.T) {
	const (
		token     = `"fencedlease.io/token":"7"`
		guarded   = `"labels":{"fencedlease.io/guarded-by":"x"}`
		current   = `{"metadata":{"annotations":{` + token + `},` + guarded + `,"resourceVersion":"100"}}`
		earlier   = `{"metadata":{"annotations":{"fencedlease.io/token":"6"},` + guarded + `,"resourceVersion":"100"}}`
		unguarded = `{"metadata":{"name":"a","resourceVersion":"100"}}`
		jsonPatch = "application/json-patch+json"
		protobuf  = "application/vnd.kubernetes.protobuf"
	)
	cases := map[string]struct {
		method, uri, kind, body string
		byIdentity              bool
		want                    []sent
	}{
		"a PUT, stamped for the identity, with the nonce that it inherited": {
			method: "PUT", uri: configMap, kind: jsonType, byIdentity: true,
			body: `{"metadata":{"annotations":{"fencedlease.io/token":"6","fencedlease.io/write":"6/x"}}}`,
			want: []sent{{Method: "PUT", URI: configMap, Type: jsonType,
				Body: `{"metadata":{"annotations":{` + token + `,"fencedlease.io/write":"6/x"}}}`}},
		},
		"a merge patch": {
			method: "PATCH", uri: configMap + "?fieldManager=m", kind: mergeType, byIdentity: true, body: `{"data":{"a":null}}`,
			want: []sent{{Method: "PATCH", URI: configMap + "?fieldManager=m", Type: mergeType,
				Body: `{"data":{"a":null},"metadata":{"annotations":{` + token + `}}}`}},
		},
		"a strategic merge patch": {
			method: "PATCH", uri: configMap, kind: "application/strategic-merge-patch+json", byIdentity: true, body: `{}`,
			want: []sent{{Method: "PATCH", URI: configMap, Type: "application/strategic-merge-patch+json",
				Body: `{"metadata":{"annotations":{` + token + `}}}`}},
		},
		"an apply in YAML": {
			method: "PATCH", uri: configMap, kind: "application/apply-patch+yaml", byIdentity: true, body: "data:\n  a: b\n",
			want: []sent{{Method: "PATCH", URI: configMap, Type: "application/apply-patch+yaml",
				Body: `{"data":{"a":"b"},"metadata":{"annotations":{` + token + `}}}`}},
		},
		"a POST whose type has parameters": {
			method: "POST", uri: "/api/v1/namespaces/prod/secrets", kind: "application/json; charset=utf-8", byIdentity: true, body: `{}`,
			want: []sent{{Method: "POST", URI: "/api/v1/namespaces/prod/secrets", Type: "application/json; charset=utf-8",
				Body: `{"metadata":{"annotations":{` + token + `}}}`}},
		},
		"a patch that removes all annotations, as an extra: it has no place for one": {
			method: "PATCH", uri: configMap, kind: mergeType, byIdentity: true, body: `{"metadata":{"annotations":null}}`,
			want: []sent{{Method: "PATCH", URI: configMap, Type: mergeType, Body: `{"metadata":{"annotations":null}}`, As: asAnna}},
		},
		"a DELETE, proven by the identity": {
			method: "DELETE", uri: configMap, byIdentity: true,
			want: []sent{{Method: "DELETE", URI: configMap}},
		},
		"a DELETE, as an extra": {
			method: "DELETE", uri: configMap,
			want: []sent{{Method: "DELETE", URI: configMap, As: asAnna}},
		},
		"a DELETE of a collection with options, as an extra": {
			method: "DELETE", uri: "/api/v1/namespaces/prod/secrets?limit=1", kind: jsonType, body: `{"kind":"DeleteOptions"}`,
			want: []sent{{Method: "DELETE", URI: "/api/v1/namespaces/prod/secrets?limit=1", Type: jsonType, Body: `{"kind":"DeleteOptions"}`, As: asAnna}},
		},
		"a JSON patch, proven": {
			method: "PATCH", uri: configMap, kind: jsonPatch, body: `[]`, byIdentity: true,
			want: []sent{{Method: "PATCH", URI: configMap, Type: jsonPatch, Body: `[]`}},
		},
		"a JSON patch, as an extra": {
			method: "PATCH", uri: configMap, kind: jsonPatch, body: `[]`,
			want: []sent{{Method: "PATCH", URI: configMap, Type: jsonPatch, Body: `[]`, As: asAnna}},
		},
		"protobuf, as an extra": {
			method: "PUT", uri: configMap, kind: protobuf, body: "k8s\x00",
			want: []sent{{Method: "PUT", URI: configMap, Type: protobuf, Body: "k8s\x00", As: asAnna}},
		},
		"a status whose object carries the token, proven": {
			method: "PUT", uri: custom + "/status", kind: jsonType, body: current, byIdentity: true,
			want: []sent{{Method: "PUT", URI: custom + "/status", Type: jsonType, Body: current}},
		},
		"a status whose object does not, proven after a seal": {
			method: "PUT", uri: custom + "/status?fieldManager=m&fieldValidation=Strict", kind: jsonType, body: earlier, byIdentity: true,
			want: []sent{
				{Method: "PATCH", URI: custom + "?fieldManager=m", Type: mergeType,
					Body: `{"metadata":{"annotations":{` + token + `},"resourceVersion":"100"}}`},
				{Method: "PUT", URI: custom + "/status?fieldManager=m&fieldValidation=Strict", Type: jsonType,
					Body: strings.Replace(earlier, `"100"`, `"101"`, 1)},
			},
		},
		"a status without a revision, which expects none after the seal either": {
			method: "PUT", uri: custom + "/status", kind: jsonType, body: `{"metadata":{` + guarded + `}}`, byIdentity: true,
			want: []sent{
				{Method: "PATCH", URI: custom, Type: mergeType, Body: `{"metadata":{"annotations":{` + token + `}}}`},
				{Method: "PUT", URI: custom + "/status", Type: jsonType, Body: `{"metadata":{` + guarded + `}}`},
			},
		},
		"a dry run of a status, as an extra: it must not seal": {
			method: "PUT", uri: custom + "/status?dryRun=All", kind: jsonType, body: earlier, byIdentity: true,
			want: []sent{{Method: "PUT", URI: custom + "/status?dryRun=All", Type: jsonType, Body: earlier, As: asAnna}},
		},
		"the status of what is not guarded": {
			method: "PUT", uri: custom + "/status", kind: jsonType, body: unguarded, byIdentity: true,
			want: []sent{{Method: "PUT", URI: custom + "/status", Type: jsonType, Body: unguarded}},
		},
		"a patch of a status, as an extra": {
			method: "PATCH", uri: custom + "/status", kind: mergeType, body: `{"status":{}}`,
			want: []sent{{Method: "PATCH", URI: custom + "/status", Type: mergeType, Body: `{"status":{}}`, As: asAnna}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api, src := &server{t: t}, &source{claim: claim.Claim{Token: 7, ByIdentity: tc.byIdentity}}
			req, b := newRequest(t, tc.method, tc.uri, tc.kind, tc.body)
			before := req.Header.Clone()
			roundTrip(t, claim.NewTransport(api, src, anna), req)

			if diff := cmp.Diff(tc.want, api.sent); diff != "" {
				t.Errorf("sent (-want,+got):\n%s", diff)
			}
			if req.Body != nil && !b.closed {
				t.Error("the body was not closed")
			}
			if diff := cmp.Diff(before, req.Header); diff != "" {
				t.Errorf("the caller's request was changed (-was,+is):\n%s", diff)
			}
		})
	}
}

func TestNonce(t *testing.T) {
	api := &server{t: t}
	transport := claim.NewTransport(api, claim.Fixed(7), anna)
	for _, content := range []string{
		`{"data":{"a":"1"},"metadata":{"resourceVersion":"1"}}`,
		`{"data":{"a":"1"},"metadata":{"resourceVersion":"2","annotations":{"fencedlease.io/write":"7/mine"}}}`,
		`{"data":{"a":"2"},"metadata":{"resourceVersion":"3"}}`,
	} {
		req, _ := newRequest(t, "PUT", configMap, jsonType, content)
		roundTrip(t, transport, req)
	}
	var nonces []string
	for _, request := range api.sent {
		annotations := annotationsOf(t, request.Body)
		nonces = append(nonces, annotations["fencedlease.io/write"])
		if token := annotations["fencedlease.io/token"]; token != "7" {
			t.Errorf("the token is %q", token)
		}
	}
	if !strings.HasPrefix(nonces[0], "7/") || nonces[1] != nonces[0] || nonces[2] == nonces[0] {
		t.Errorf("the nonce should tell contents apart, and nothing else: %q", nonces)
	}
}

func TestImpersonationOfAnother(t *testing.T) {
	api := &server{t: t}
	nobody := func(context.Context) (rest.ImpersonationConfig, error) {
		t.Error("it does not matter who the client is")
		return rest.ImpersonationConfig{}, nil
	}
	req, _ := newRequest(t, "DELETE", configMap, "", "")
	req.Header.Set("Impersonate-User", "bert")
	req.Header.Set("Impersonate-Extra-Fencedlease.io%2ftoken", "6")
	roundTrip(t, claim.NewTransport(api, claim.Fixed(7), nobody), req)

	want := []sent{{Method: "DELETE", URI: configMap, As: map[string]string{"User": "bert", "Extra-Fencedlease.io%2ftoken": "7"}}}
	if diff := cmp.Diff(want, api.sent); diff != "" {
		t.Errorf("sent (-want,+got):\n%s", diff)
	}
}

func TestNothingIsSent(t *testing.T) {
	errOver := errors.New("the term is over")
	errSelf := errors.New("no answer")
	cases := map[string]struct {
		method, uri, content string
		source               claim.Source
		wantIs               error
		wantSays             string
	}{
		"without a claim":                 {method: "PUT", uri: configMap, content: `{}`, source: &source{err: errOver}, wantIs: errOver},
		"out of reach, without a claim":   {method: "PUT", uri: "/api/v1/namespaces/prod/pods/a", content: `{}`, source: &source{err: errOver}, wantIs: errOver},
		"a body without a place for it":   {method: "PUT", uri: configMap, content: `[]`, source: claim.Fixed(7), wantSays: "it is not a JSON object"},
		"a body that is too large":        {method: "PUT", uri: configMap, content: strings.Repeat(" ", 5<<20), source: claim.Fixed(7), wantSays: "larger than 4194304 bytes"},
		"an extra of who knows whom":      {method: "DELETE", uri: configMap, content: `{}`, source: claim.Fixed(7), wantIs: errSelf, wantSays: "can carry fencing token 7 as a user extra only"},
		"a status of who knows whom else": {method: "PUT", uri: custom + "/status", content: `{}`, source: claim.Fixed(7), wantIs: errSelf, wantSays: "who we are could not be learnt"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := &server{t: t}
			self := func(context.Context) (rest.ImpersonationConfig, error) { return rest.ImpersonationConfig{}, errSelf }
			req, b := newRequest(t, tc.method, tc.uri, jsonType, tc.content)
			client := http.Client{Transport: claim.NewTransport(api, tc.source, self)}
			resp, err := client.Do(req)
			if err == nil {
				_ = resp.Body.Close()
				t.Fatal("it was sent")
			}
			if tc.wantIs != nil && !errors.Is(err, tc.wantIs) || !strings.Contains(err.Error(), tc.wantSays) {
				t.Errorf("want %v, which says %q, got %v", tc.wantIs, tc.wantSays, err)
			}
			if len(api.sent) != 0 || !b.closed {
				t.Errorf("sent %v; the body is closed: %t", api.sent, b.closed)
			}
		})
	}
}

// What the fence says reaches the caller whole, and the source before it.
func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		answer      answer
		wantRefused []fence.Reason
	}{
		"a token that is stale":     {answer: refusal(412, fence.ReasonStale, 7, 8), wantRefused: []fence.Reason{fence.ReasonStale}},
		"a newer term":              {answer: refusal(412, fence.ReasonStale, fence.None, 8), wantRefused: []fence.Reason{fence.ReasonStale}},
		"stale by the strict order": {answer: refusal(412, fence.ReasonStale, 7, 7), wantRefused: []fence.Reason{fence.ReasonStale}},
		"a claim of another term":   {answer: refusal(428, fence.ReasonRequired, fence.None, 8), wantRefused: []fence.Reason{fence.ReasonRequired}},
		"a fence out of order":      {answer: refusal(503, fence.ReasonUnavailable, fence.None, fence.None), wantRefused: []fence.Reason{fence.ReasonUnavailable}},
		"a right that is missing":   {answer: refusal(403, "Forbidden", fence.None, fence.None)},
		"a conflict":                {answer: answer{code: 409, body: `{"reason":"Conflict"}`}},
		"no JSON":                   {answer: answer{code: 502, body: "bad gateway", kind: "text/plain"}},
		"bad JSON":                  {answer: answer{code: 500, body: "{"}},
		"more than a Status":        {answer: answer{code: 500, body: strings.Repeat(" ", 2<<20)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api, src := &server{t: t, answers: []answer{tc.answer}}, &source{claim: claim.Claim{Token: 7, ByIdentity: true}}
			req, _ := newRequest(t, "PUT", configMap, jsonType, `{}`)
			code, got := roundTrip(t, claim.NewTransport(api, src, anna), req)
			if code != tc.answer.code || got != tc.answer.body {
				t.Errorf("want %d %.200s, got %d %.200s", tc.answer.code, tc.answer.body, code, got)
			}
			if len(api.sent) != 1 || src.notByIdentity != 0 {
				t.Errorf("sent %d times; %d times not by identity", len(api.sent), src.notByIdentity)
			}
			if diff := cmp.Diff(tc.wantRefused, src.refused); diff != "" {
				t.Errorf("told of (-want,+got):\n%s", diff)
			}
		})
	}
}
