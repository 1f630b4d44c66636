package fence_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
)

// verdictCase is a request and the row that answers it. A row that allows has
// no code and no reason.
type verdictCase struct {
	request *requestBuilder
	state   *stateBuilder // default: token 6, held by anna's Pod

	wantRow    fence.Row
	wantCode   int32
	wantReason fence.Reason
	wantSays   string // part of the refusal's message, or of the warning
	wantFacts  *fence.Facts
}

func testVerdicts(t *testing.T, cases map[string]verdictCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := makeState()
			if tc.state != nil {
				state = tc.state
			}
			verdict := fence.Judge(tc.request.Obj(), state.Obj())
			if diff := cmp.Diff(tc.wantRow, verdict.Row); diff != "" {
				t.Errorf("row (-want,+got):\n%s", diff)
			}
			if verdict.Allowed() != (verdict.Refusal == nil) {
				t.Errorf("allowed is %t, but the refusal is %v", verdict.Allowed(), verdict.Refusal)
			}
			if tc.wantFacts != nil {
				checkFacts(t, *tc.wantFacts, verdict.Facts)
			}
			if tc.wantCode == 0 {
				checkAllowed(t, &verdict, tc.wantSays)
				return
			}
			checkRefusal(t, verdict.Refusal, tc.wantCode, tc.wantReason, tc.wantSays)
			if verdict.Refusal != nil {
				checkFacts(t, verdict.Facts, verdict.Refusal.Facts)
			}
			if verdict.Warning != "" {
				t.Errorf("a refusal with a warning: %s", verdict.Warning)
			}
		})
	}
}

// checkAllowed asserts that a request is allowed with that warning, if any.
func checkAllowed(t *testing.T, verdict *fence.Verdict, says string) {
	t.Helper()
	if !verdict.Allowed() {
		t.Fatalf("refused: %d %s: %s", verdict.Refusal.Code, verdict.Refusal.Reason, verdict.Refusal.Message)
	}
	if says == "" && verdict.Warning != "" {
		t.Errorf("an unexpected warning: %s", verdict.Warning)
	}
	if !strings.Contains(verdict.Warning, says) {
		t.Errorf("the warning should say %q: %s", says, verdict.Warning)
	}
}

// G12: what the holder of the current token does.
func TestG12(t *testing.T) {
	testVerdicts(t, map[string]verdictCase{
		"creates":                               {request: makeCreate().Token("6"), wantRow: fence.RowAllowed},
		"raises the mark, which seals":          {request: makeUpdate("5").Token("6").OnlyOurKeys(), wantRow: fence.RowAllowed},
		"writes under a mark of its own":        {request: makeUpdate("6").Nonce("6/1"), wantRow: fence.RowAllowed},
		"marks an object that never had a mark": {request: makeUpdate("").Token("6"), wantRow: fence.RowAllowed},
		"sends the claim in headers":            {request: makeUpdate("5").Stamped("6"), wantRow: fence.RowAllowed},
		"writes the status":                     {request: makeStatus("5").Extra("6"), wantRow: fence.RowAllowed},
		"deletes":                               {request: makeDelete("5").Extra("6"), wantRow: fence.RowAllowed},
		"is known by its Pod":                   {request: makeUpdate("6").By(anna), wantRow: fence.RowAllowed},
		"deletes, known by its Pod":             {request: makeDelete("5").By(anna), wantRow: fence.RowAllowed},
		"puts the label on":                     {request: makeLabelling("").Token("6"), wantRow: fence.RowAllowed},
		"puts the label on beside an old token": {request: makeLabelling("6"), wantRow: fence.RowAllowed},
		"puts it on, and lowers what was no mark": {
			request: makeLabelling("900").Token("6"), wantRow: fence.RowAllowed,
		},
		"takes the label off": {request: makeUpdate("5").GuardedBy("").Token("6"), wantRow: fence.RowAllowed},
		"takes the label off, its token too": {
			request: makeUpdate("5").GuardedBy("").Extra("6").Token(""), wantRow: fence.RowAllowed,
		},
		"writes though its Lease is not adopted again": {
			request: makeUpdate("5").Token("6"), state: makeState().Unfenced(), wantRow: fence.RowAllowed,
		},
		"another Pod that presents the token may as well": {
			request: makeUpdate("5").Token("6").By(boris), wantRow: fence.RowAllowed,
			wantFacts: &fence.Facts{Presented: 6, Mark: 5, Current: 6, Holder: "anna", Writer: anna},
		},
	})
}

// The rows are tried in order; the first that applies is the answer.
func TestRowOrder(t *testing.T) {
	testVerdicts(t, map[string]verdictCase{
		"exempt before all": {
			request: makeUpdate("6").Token("x").User("system:serviceaccount:kube-system:generic-garbage-collector"),
			state:   makeState().Missing(), wantRow: fence.RowExempt,
		},
		"unchanged before G2": {
			request: makeUpdate("6").Nothing(), state: makeState().Missing(), wantRow: fence.RowUnchanged,
		},
		"unchanged before G5": {
			request: makeUpdate("7").Nothing(), wantRow: fence.RowUnchanged,
		},
		"G1 before G2": {
			request: makeUpdate("6").Token("x"), state: makeState().Missing(),
			wantRow: fence.RowInvalid, wantCode: 422, wantReason: fence.ReasonInvalid,
		},
		"G3 before G2": {
			request: makeUpdate("6").GuardedBy("invoices"), state: makeState().Missing(),
			wantRow: fence.RowMoved, wantCode: 422, wantReason: fence.ReasonInvalid,
		},
		"G4 before G2, if nothing is known": {
			request: makeDelete("6"), state: makeState().Unreadable("timeout"),
			wantRow: fence.RowUnreadable, wantCode: 503, wantReason: fence.ReasonUnavailable,
		},
		"G4 before G9": {
			request: makeUpdate("6").Token("5"), state: makeState().Retired(),
			wantRow: fence.RowUnreadable, wantCode: 503, wantReason: fence.ReasonUnavailable,
		},
		"G5 before G7": {
			request: makeUpdate("7"),
			wantRow: fence.RowRegressed, wantCode: 422, wantReason: fence.ReasonRegressed,
		},
		"G5 before G8": {
			request: makeUpdate("7").Token("8"),
			wantRow: fence.RowRegressed, wantCode: 422, wantReason: fence.ReasonRegressed,
		},
		"G5 before G9": {
			request: makeUpdate("7").Token("6"),
			wantRow: fence.RowRegressed, wantCode: 422, wantReason: fence.ReasonRegressed,
		},
		"G7 before G11": {
			request: makeUpdate("6").Token(""),
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired,
		},
		"G8 before G9": {
			request: makeUpdate("6").Extra("5").Token("7"),
			wantRow: fence.RowFuture, wantCode: 403, wantReason: fence.ReasonNeverIssued,
		},
		"G9 before G10": {
			request: makeUpdate("6").Token("5"), state: makeState().StrictlyNewer(),
			wantRow: fence.RowStale, wantCode: 412, wantReason: fence.ReasonStale, wantSays: "You are no longer the leader",
		},
		"G9 before G11": {
			request: makeUpdate("6").Extra("5"),
			wantRow: fence.RowStale, wantCode: 412, wantReason: fence.ReasonStale,
		},
		"G10 before G11": {
			request: makeUpdate("6").Extra("6").Token(""), state: makeState().StrictlyNewer(),
			wantRow: fence.RowNotNewer, wantCode: 412, wantReason: fence.ReasonStale,
		},
	})
}

// JudgeAlone answers what needs no reading, exactly as Judge does.
func TestJudgeAlone(t *testing.T) {
	cases := map[string]struct {
		request *requestBuilder
		want    fence.Row // "" where the state has to be read
	}{
		"exempt":          {request: makeDelete("6").User("system:serviceaccount:kube-system:namespace-controller"), want: fence.RowExempt},
		"unchanged":       {request: makeUpdate("6").Nothing(), want: fence.RowUnchanged},
		"our keys":        {request: makeStatus("6").Token("7"), want: fence.RowStatusKeys},
		"G1":              {request: makeUpdate("6").Token("x"), want: fence.RowInvalid},
		"G3":              {request: makeUpdate("6").GuardedBy("invoices"), want: fence.RowMoved},
		"a stale token":   {request: makeUpdate("6").Token("5")},
		"no token":        {request: makeUpdate("6")},
		"a good token":    {request: makeUpdate("5").Token("6")},
		"a bypass reason": {request: makeUpdate("6").Bypass("restore")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := tc.request.Obj()
			alone, ok := fence.JudgeAlone(request)
			if ok != (tc.want != "") || alone.Row != tc.want {
				t.Fatalf("want row %q, got %q (%t)", tc.want, alone.Row, ok)
			}
			if !ok {
				return
			}
			read := fence.Judge(request, makeState().Obj())
			if read.Row != alone.Row || read.Allowed() != alone.Allowed() {
				t.Errorf("alone: %s, allowed %t; read: %s, allowed %t", alone.Row, alone.Allowed(), read.Row, read.Allowed())
			}
		})
	}
}
