package claim_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		"an apply whose annotations another manager has: sealed, so that it says what is stored": {
			method: "PATCH", uri: configMap, kind: applyType, body: `{}`, byIdentity: true,
			answers:  []answer{contested},
			want:     []string{"PATCH a token", "PATCH a token", "PATCH a token"},
			wantCode: 200,
		},
		"the same without an identity that proves: as an extra": {
			method: "PATCH", uri: configMap, kind: applyType, body: `{}`,
			answers:  []answer{contested},
			want:     []string{"PATCH a token+nonce", "PATCH a extra"},
			wantCode: 200,
		},
		"the same in a dry run, which must not seal: as an extra": {
			method: "PATCH", uri: configMap + "?dryRun=All", kind: applyType, body: `{}`, byIdentity: true,
			answers:  []answer{contested},
			want:     []string{"PATCH a?dryRun=All token", "PATCH a?dryRun=All extra"},
			wantCode: 200,
		},
		"an apply that conflicts in more than our annotations": {
			method: "PATCH", uri: configMap, kind: applyType, body: `{}`, byIdentity: true,
			answers:  []answer{conflictIn(".metadata.annotations.fencedlease.io/token", ".data.balance")},
			want:     []string{"PATCH a token"},
			wantCode: 409,
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
			if src.notByIdentity != tc.wantNotByIdentity {
				t.Errorf("%d times not by identity, want %d", src.notByIdentity, tc.wantNotByIdentity)
			}
		})
	}
}

// contested is the answer to an apply whose annotations another manager has.
var contested = conflictIn(".metadata.annotations.fencedlease.io/token", ".metadata.annotations.fencedlease.io/write")

func conflictIn(fields ...string) answer {
	status := metav1.Status{Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict, Details: &metav1.StatusDetails{}}
	for _, field := range fields {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: field})
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return answer{code: 409, body: string(body)}
}

// A write that was refused because its own term's token was raised is sent once
// more, with the new token; not if the term is over.
func TestRaisedToken(t *testing.T) {
	late := refusal(412, fence.ReasonStale, 7, 8)
	later := refusal(412, fence.ReasonStale, 8, 9)
	cases := map[string]struct {
		answers    []answer
		then       fence.Token // the token of the term after each refusal, above the one before
		err        error       // or its end
		wantTokens []string
		wantCode   int
	}{
		"raised":                   {answers: []answer{late}, then: 1, wantTokens: []string{"7", "8"}, wantCode: 200},
		"raised again: no more":    {answers: []answer{late, later}, then: 1, wantTokens: []string{"7", "8"}, wantCode: 412},
		"not raised":               {answers: []answer{late}, wantTokens: []string{"7"}, wantCode: 412},
		"over":                     {answers: []answer{late}, err: errors.New("over"), wantTokens: []string{"7"}, wantCode: 412},
		"about nothing of that":    {answers: []answer{refusal(422, fence.ReasonNotFound, 7, 8)}, then: 1, wantTokens: []string{"7"}, wantCode: 422},
		"about a token of its own": {answers: []answer{refusal(412, fence.ReasonStale, 7, 7)}, then: 1, wantTokens: []string{"7"}, wantCode: 412},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := &server{t: t, answers: tc.answers}
			src := &source{claim: claim.Claim{Token: 7, ByIdentity: true}, raise: tc.then, end: tc.err}
			req, _ := newRequest(t, "PUT", configMap, jsonType, `{}`)
			code, _ := roundTrip(t, claim.NewTransport(api, src, anna), req)
			var tokens []string
			for _, request := range api.sent {
				tokens = append(tokens, annotationsOf(t, request.Body)["fencedlease.io/token"])
			}
			if diff := cmp.Diff(tc.wantTokens, tokens); diff != "" || code != tc.wantCode {
				t.Errorf("code %d, want %d; tokens (-want,+got):\n%s", code, tc.wantCode, diff)
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
