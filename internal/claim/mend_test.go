package claim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/claim"
)

// A claim of the living term that the fence did not see is sent in another way.
func TestMends(t *testing.T) {
	const (
		sealBody  = `{"metadata":{"annotations":{"fencedlease.io/token":"7"}}}`
		jsonPatch = "application/json-patch+json"
		status    = `{"status":{}}`
	)
	// The stored mark is older, and the writer does not hold the token by identity.
	unseenOverOlder := refusal(412, fence.ReasonStale, fence.None, 7)
	stale := refusal(412, fence.ReasonStale, 7, 8)

	cases := map[string]struct {
		method, uri, kind, body string
		byIdentity              bool
		answers                 []answer

		want              []string // what was sent: method, path, way
		wantCode          int
		wantRefused       []fence.Reason
		wantNotByIdentity int
	}{
		"a stamp that the identity does not prove: with a nonce": {
			method: "PUT", uri: configMap, kind: jsonType, body: `{}`, byIdentity: true,
			answers:  []answer{unseen},
			want:     []string{"PUT a token", "PUT a token+nonce"},
			wantCode: 200, wantNotByIdentity: 1,
		},
		"a nonce that was the stored one already: with salt": {
			method: "PUT", uri: configMap, kind: jsonType, body: `{}`,
			answers:  []answer{unseen},
			want:     []string{"PUT a token+nonce", "PUT a token+nonce+salt"},
			wantCode: 200,
		},
		"neither the identity nor the nonce: with salt": {
			method: "PUT", uri: configMap, kind: jsonType, body: `{}`, byIdentity: true,
			answers:  []answer{unseen, unseen},
			want:     []string{"PUT a token", "PUT a token+nonce", "PUT a token+nonce+salt"},
			wantCode: 200, wantNotByIdentity: 1,
		},
		"never seen: not for ever": {
			method: "PUT", uri: configMap, kind: jsonType, body: `{}`, byIdentity: true,
			answers:  []answer{unseen, unseen, unseen},
			want:     []string{"PUT a token", "PUT a token+nonce", "PUT a token+nonce+salt"},
			wantCode: 428, wantNotByIdentity: 1, wantRefused: []fence.Reason{fence.ReasonRequired},
		},
		"a patch of a status whose object lacks the token: sealed": {
			method: "PATCH", uri: custom + "/status", kind: mergeType, body: status, byIdentity: true,
			answers:  []answer{unseen},
			want:     []string{"PATCH status as it is", "PATCH a token", "PATCH status as it is"},
			wantCode: 200,
		},
		"a JSON patch whose object lacks the token: sealed": {
			method: "PATCH", uri: configMap, kind: jsonPatch, body: `[]`, byIdentity: true,
			answers:  []answer{unseen},
			want:     []string{"PATCH a as it is", "PATCH a token", "PATCH a as it is"},
			wantCode: 200,
		},
		"a status that a seal does not help: as an extra": {
			method: "PATCH", uri: custom + "/status", kind: mergeType, body: status, byIdentity: true,
			answers:  []answer{unseen, done, unseen},
			want:     []string{"PATCH status as it is", "PATCH a token", "PATCH status as it is", "PATCH status extra"},
			wantCode: 200, wantNotByIdentity: 1,
		},
		"a seal that is late is the answer": {
			method: "PATCH", uri: custom + "/status", kind: mergeType, body: status, byIdentity: true,
			answers:  []answer{unseen, stale},
			want:     []string{"PATCH status as it is", "PATCH a token"},
			wantCode: 412, wantRefused: []fence.Reason{fence.ReasonStale},
		},
		"a seal before the write that conflicts is the answer": {
			method: "PUT", uri: custom + "/status", kind: jsonType, byIdentity: true,
			body:     `{"metadata":{"labels":{"fencedlease.io/guarded-by":"x"}}}`,
			answers:  []answer{{code: 409, body: `{"reason":"Conflict"}`}},
			want:     []string{"PATCH a token"},
			wantCode: 409,
		},
		"a DELETE that the identity does not prove: as an extra": {
			method: "DELETE", uri: configMap, byIdentity: true,
			answers:  []answer{unseen},
			want:     []string{"DELETE a as it is", "DELETE a extra"},
			wantCode: 200, wantNotByIdentity: 1,
		},
		"a DELETE over an older mark by who is not the holder: as an extra": {
			method: "DELETE", uri: configMap, byIdentity: true,
			answers:  []answer{unseenOverOlder},
			want:     []string{"DELETE a as it is", "DELETE a extra"},
			wantCode: 200, wantNotByIdentity: 1,
		},
		"an extra that is not seen stays refused": {
			method: "DELETE", uri: configMap,
			answers:  []answer{unseen},
			want:     []string{"DELETE a extra"},
			wantCode: 428, wantRefused: []fence.Reason{fence.ReasonRequired},
		},
		"a term that ends in between": {
			method: "PUT", uri: configMap, kind: jsonType, body: `{}`, byIdentity: true,
			answers:  []answer{unseen, stale},
			want:     []string{"PUT a token", "PUT a token+nonce"},
			wantCode: 412, wantNotByIdentity: 1, wantRefused: []fence.Reason{fence.ReasonStale},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := &server{t: t, answers: tc.answers}
			src := &source{claim: claim.Claim{Token: 7, ByIdentity: tc.byIdentity}}
			req, _ := newRequest(t, tc.method, tc.uri, tc.kind, tc.body)
			code, _ := roundTrip(t, claim.NewTransport(api, src, anna), req)

			var got []string
			for _, request := range api.sent {
				got = append(got, describe(t, request))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sent (-want,+got):\n%s", diff)
			}
			if code != tc.wantCode {
				t.Errorf("code %d, want %d", code, tc.wantCode)
			}
			if diff := cmp.Diff(tc.wantRefused, src.refused); diff != "" {
				t.Errorf("told of (-want,+got):\n%s", diff)
			}
			if src.asked != 1 || src.notByIdentity != tc.wantNotByIdentity {
				t.Errorf("asked %d times; %d times not by identity, want %d", src.asked, src.notByIdentity, tc.wantNotByIdentity)
			}
		})
	}
}

// A patch that expects a revision expects the one that the seal made.
func TestSealMovesTheExpectedRevision(t *testing.T) {
	api := &server{t: t, answers: []answer{unseen}}
	src := &source{claim: claim.Claim{Token: 7, ByIdentity: true}}
	req, _ := newRequest(t, "PATCH", custom+"/status", mergeType, `{"metadata":{"resourceVersion":"100"},"status":{"big":12345678901234567890}}`)
	roundTrip(t, claim.NewTransport(api, src, anna), req)

	want := []sent{
		{Method: "PATCH", URI: custom + "/status", Type: mergeType, Body: `{"metadata":{"resourceVersion":"100"},"status":{"big":12345678901234567890}}`},
		{Method: "PATCH", URI: custom, Type: mergeType, Body: `{"metadata":{"annotations":{"fencedlease.io/token":"7"},"resourceVersion":"100"}}`},
		{Method: "PATCH", URI: custom + "/status", Type: mergeType, Body: `{"metadata":{"resourceVersion":"101"},"status":{"big":12345678901234567890}}`},
	}
	if diff := cmp.Diff(want, api.sent); diff != "" {
		t.Errorf("sent (-want,+got):\n%s", diff)
	}
}

// describe is a request in short: its method, the last segment of its path, and how
// it carries the claim.
func describe(t *testing.T, request sent) string {
	t.Helper()
	way := "as it is"
	if strings.HasPrefix(request.Body, "{") {
		annotations := annotationsOf(t, request.Body)
		if annotations["fencedlease.io/token"] == "7" {
			way = "token"
		}
		if nonce := annotations["fencedlease.io/write"]; nonce != "" {
			way += "+nonce"
			if strings.Contains(nonce, "-") {
				way += "+salt"
			}
		}
	}
	if request.As["Extra-Fencedlease.io%2ftoken"] == "7" {
		way = "extra"
	}
	path := strings.Split(request.URI, "/")
	return request.Method + " " + path[len(path)-1] + " " + way
}
