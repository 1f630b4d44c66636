package fence_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
)

// Enforcement Warn admits what G7, G9 and G10 would refuse, and nothing else.
func TestWarn(t *testing.T) {
	cases := map[string]struct {
		request *requestBuilder
		state   *stateBuilder
		wantRow fence.Row

		wantWarned bool
		wantReason fence.Reason // of the refusal, made or spared
	}{
		"G7, 428": {
			request: makeUpdate("6"), state: makeState(),
			wantRow: fence.RowUnclaimed, wantWarned: true, wantReason: fence.ReasonRequired,
		},
		"G7, 412": {
			request: makeUpdate("5").By(boris), state: makeState(),
			wantRow: fence.RowUnclaimed, wantWarned: true, wantReason: fence.ReasonStale,
		},
		"G9": {
			request: makeUpdate("6").Token("5"), state: makeState(),
			wantRow: fence.RowStale, wantWarned: true, wantReason: fence.ReasonStale,
		},
		"G10": {
			request: makeUpdate("6").Nonce("6/1"), state: makeState().StrictlyNewer(),
			wantRow: fence.RowNotNewer, wantWarned: true, wantReason: fence.ReasonStale,
		},
		"G1": {
			request: makeUpdate("6").Token("x"), state: makeState(),
			wantRow: fence.RowInvalid, wantReason: fence.ReasonInvalid,
		},
		"G3": {
			request: makeUpdate("6").GuardedBy("invoices"), state: makeState(),
			wantRow: fence.RowMoved, wantReason: fence.ReasonInvalid,
		},
		"G4": {
			request: makeUpdate("5").Token("6"), state: makeState().Retired(),
			wantRow: fence.RowUnreadable, wantReason: fence.ReasonUnavailable,
		},
		"G5": {
			request: makeUpdate("7").Token("6"), state: makeState(),
			wantRow: fence.RowRegressed, wantReason: fence.ReasonRegressed,
		},
		"G8: a forgery would lock everyone out": {
			request: makeUpdate("6").Token("7"), state: makeState(),
			wantRow: fence.RowFuture, wantReason: fence.ReasonNeverIssued,
		},
		"G11": {
			request: makeUpdate("5").Extra("6"), state: makeState(),
			wantRow: fence.RowMismatch, wantReason: fence.ReasonInvalid,
		},
		"G12 needs no warning": {
			request: makeUpdate("5").Token("6"), state: makeState(),
			wantRow: fence.RowAllowed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := tc.request.Obj()
			verdict := fence.Judge(request, tc.state.Warn().Obj())
			if verdict.Row != tc.wantRow || verdict.Warned != tc.wantWarned {
				t.Fatalf("want %s, warned %t; got %s, warned %t", tc.wantRow, tc.wantWarned, verdict.Row, verdict.Warned)
			}
			switch {
			case tc.wantWarned:
				checkAllowed(t, &verdict, "admitted only because enforcement is Warn; Deny would refuse it with "+string(tc.wantReason))
				tc.state.state.Warn = false
				deny := fence.Judge(request, tc.state.Obj())
				if diff := cmp.Diff(deny.Refusal, verdict.Refused); diff != "" {
					t.Errorf("what Deny would say (-want,+got):\n%s", diff)
				}
			case tc.wantReason == "":
				checkAllowed(t, &verdict, "")
			case verdict.Allowed() || verdict.Refusal.Reason != tc.wantReason:
				t.Errorf("want a refusal with %s, got %+v", tc.wantReason, verdict)
			}
		})
	}
}

// The reason of a break-glass write counts if it is fresh, and only where the
// row lets it.
func TestBypassReason(t *testing.T) {
	cases := map[string]struct {
		request *requestBuilder
		state   *stateBuilder
		want    string
	}{
		"an annotation":                       {request: makeUpdate("6").Bypass("restore"), want: "restore"},
		"an annotation that changes":          {request: makeUpdate("6").StoredBypass("drill").Bypass("restore"), want: "restore"},
		"a create":                            {request: makeCreate().Bypass("restore"), want: "restore"},
		"spaces around it":                    {request: makeUpdate("6").Bypass(" restore\n"), want: "restore"},
		"a stored reason counts for nothing":  {request: makeUpdate("6").StoredBypass("restore").Bypass("restore")},
		"a reason that goes":                  {request: makeUpdate("6").StoredBypass("restore")},
		"a blank is no reason":                {request: makeUpdate("6").Bypass(" ")},
		"the extra of a delete":               {request: makeDelete("6").BypassExtra("restore"), want: "restore"},
		"the extra of a status write":         {request: makeStatus("6").BypassExtra("restore"), want: "restore"},
		"the extra of an update is not asked": {request: makeUpdate("6").BypassExtra("restore")},
		"an extra with two values":            {request: makeDelete("6").BypassExtra("restore", "drill")},
		"a blank extra":                       {request: makeDelete("6").BypassExtra(" ")},

		"G2":                    {request: makeUpdate("6").Bypass("restore"), state: makeState().Missing(), want: "restore"},
		"G5":                    {request: makeUpdate("7").Bypass("restore"), want: "restore"},
		"G9":                    {request: makeUpdate("6").Token("5").Bypass("restore"), want: "restore"},
		"G10":                   {request: makeUpdate("6").Nonce("6/1").Bypass("restore"), state: makeState().StrictlyNewer(), want: "restore"},
		"not G1":                {request: makeUpdate("6").Token("x").Bypass("restore")},
		"not G3":                {request: makeUpdate("6").GuardedBy("invoices").Bypass("restore")},
		"not G4":                {request: makeUpdate("6").Bypass("restore"), state: makeState().Unreadable("timeout")},
		"not G8":                {request: makeUpdate("6").Token("7").Bypass("restore")},
		"not G11":               {request: makeUpdate("5").Extra("6").Bypass("restore")},
		"not if allowed anyway": {request: makeUpdate("5").Token("6").Bypass("restore")},
		"not under Warn":        {request: makeUpdate("6").Bypass("restore"), state: makeState().Warn()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := makeState()
			if tc.state != nil {
				state = tc.state
			}
			verdict := fence.Judge(tc.request.Obj(), state.Obj())
			if diff := cmp.Diff(tc.want, verdict.BypassReason); diff != "" {
				t.Errorf("reason (-want,+got):\n%s", diff)
			}
		})
	}
}

// Break-glass admits a refused write, and the mark stays exactly as it was.
func TestBreakGlass(t *testing.T) {
	cases := map[string]struct {
		request *requestBuilder
		state   *stateBuilder

		wantRow      fence.Row
		wantBroken   bool // admitted, and only by break-glass
		wantMismatch bool // refused, since the mark would change
	}{
		"an update that inherits the mark": {
			request: makeUpdate("6").Bypass("restore"), wantRow: fence.RowUnclaimed, wantBroken: true,
		},
		"a delete": {
			request: makeDelete("6").BypassExtra("restore"), wantRow: fence.RowUnclaimed, wantBroken: true,
		},
		"a status write": {
			request: makeStatus("6").BypassExtra("restore"), wantRow: fence.RowUnclaimed, wantBroken: true,
		},
		"a create without a token": {
			request: makeCreate().Bypass("restore"), wantRow: fence.RowUnclaimed, wantBroken: true,
		},
		"the label goes": {
			request: makeUpdate("6").GuardedBy("").Token("").Bypass("restore"), wantRow: fence.RowUnclaimed, wantBroken: true,
		},
		"a FencedLease that is gone": {
			request: makeUpdate("6").Bypass("restore"), state: makeState().Missing(), wantRow: fence.RowNotFound, wantBroken: true,
		},
		"a counter that was lost": {
			request: makeUpdate("7").Bypass("restore"), wantRow: fence.RowRegressed, wantBroken: true,
		},
		"a second write of the term": {
			request: makeUpdate("6").Nonce("6/1").Bypass("restore"), state: makeState().StrictlyNewer(), wantRow: fence.RowNotNewer, wantBroken: true,
		},
		"a delete with a stale token": {
			request: makeDelete("6").Extra("5").BypassExtra("restore"), wantRow: fence.RowStale, wantBroken: true,
		},

		"a stale token may not lower the mark": {
			request: makeUpdate("6").Token("5").Bypass("restore"), wantRow: fence.RowMismatch, wantMismatch: true,
		},
		"the mark may not go": {
			request: makeUpdate("6").Token("").Bypass("restore"), wantRow: fence.RowMismatch, wantMismatch: true,
		},
		"a create may not set a mark": {
			request: makeCreate().Token("5").Bypass("restore"), wantRow: fence.RowMismatch, wantMismatch: true,
		},
		"the label without a claim may not set a mark": {
			request: makeLabelling("5").Bypass("restore"), wantRow: fence.RowMismatch, wantMismatch: true,
		},

		"without a reason it is refused as before": {
			request: makeUpdate("6"), wantRow: fence.RowUnclaimed,
		},
		"a row that cannot be broken is refused as before": {
			request: makeUpdate("6").Token("7").Bypass("restore"), wantRow: fence.RowFuture,
		},
		"what is allowed anyway is left as it is": {
			request: makeUpdate("5").Token("6").Bypass("restore"), wantRow: fence.RowAllowed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := makeState()
			if tc.state != nil {
				state = tc.state
			}
			request := tc.request.Obj()
			before := fence.Judge(request, state.Obj())
			after := fence.BreakGlass(before, request)
			if after.Row != tc.wantRow {
				t.Errorf("row: want %s, got %s", tc.wantRow, after.Row)
			}
			switch {
			case tc.wantBroken && before.Allowed():
				t.Errorf("nothing to break: %s allows it", before.Row)
			case tc.wantBroken:
				checkAllowed(t, &after, "admitted by break-glass, which is recorded; without it: "+string(before.Refusal.Reason))
				if diff := cmp.Diff(before.Refusal, after.Refused); diff != "" {
					t.Errorf("what it overrides (-want,+got):\n%s", diff)
				}
				if after.BypassReason != "restore" {
					t.Errorf("the reason is lost: %q", after.BypassReason)
				}
			case tc.wantMismatch:
				checkRefusal(t, after.Refusal, 422, fence.ReasonInvalid, "a break-glass write leaves the mark exactly as it was")
				checkFacts(t, before.Facts, after.Refusal.Facts)
			default:
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("changed (-before,+after):\n%s", diff)
				}
			}
		})
	}
}
