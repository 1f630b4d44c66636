package fence_test

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
)

// Which verdicts may be given on values from a cache.
func TestFinal(t *testing.T) {
	cases := map[string]struct {
		request *requestBuilder
		cached  *stateBuilder // default: token 6, held by anna's Pod
		wantRow fence.Row
		want    bool
	}{
		"stale below a cached current: tokens only grow": {
			request: makeUpdate("5").Nonce("5/1"), wantRow: fence.RowStale, want: true,
		},
		"the same under Cached": {
			request: makeUpdate("5").Nonce("5/1"), cached: makeState().Cached(), wantRow: fence.RowStale, want: true,
		},
		"the same, and asks to break the glass": {
			request: makeUpdate("5").Nonce("5/1").Bypass("restore"), wantRow: fence.RowStale,
		},
		"the same under Warn, which admits it": {
			request: makeUpdate("5").Nonce("5/1"), cached: makeState().Warn(), wantRow: fence.RowStale,
		},
		"Linearizable: no cached value allows": {
			request: makeUpdate("5").Token("6"), wantRow: fence.RowAllowed,
		},
		"Cached: a claim is accepted": {
			request: makeUpdate("5").Token("6"), cached: makeState().Cached(), wantRow: fence.RowAllowed, want: true,
		},
		"Cached: a claim by identity is accepted": {
			request: makeUpdate("6").By(anna), cached: makeState().Cached(), wantRow: fence.RowAllowed, want: true,
		},
		"Cached: a Lease that is not cleanly ours is read": {
			request: makeUpdate("5").Token("6"), cached: makeState().Cached().Unfenced(), wantRow: fence.RowAllowed,
		},
		"Cached: a write that is allowed without a claim": {
			request: makeUpdate("5").OnlyFinalizers().InDeletion(), cached: makeState().Cached(), wantRow: fence.RowAllowed,
		},
		"Cached: no term yet": {
			request: makeUpdate(""), cached: makeState().Cached().NoTerm(), wantRow: fence.RowNoTermYet,
		},
		"a FencedLease that the cache does not know": {
			request: makeUpdate("5").Token("6"), cached: makeState().Missing(), wantRow: fence.RowNotFound,
		},
		"a delete that the cache would let go": {
			request: makeDelete("5"), cached: makeState().Missing(), wantRow: fence.RowNotFound,
		},
		"nothing is cached": {
			request: makeUpdate("5").Token("6"), cached: makeState().Unreadable("not synced"), wantRow: fence.RowUnreadable,
		},
		"a retired Lease": {
			request: makeUpdate("5").Token("6"), cached: makeState().Retired(), wantRow: fence.RowUnreadable,
		},
		"a mark above a cached current: the cache lags": {
			request: makeUpdate("7").Token("6"), wantRow: fence.RowRegressed,
		},
		"a claim above a cached current: the cache lags": {
			request: makeUpdate("6").Token("7"), wantRow: fence.RowFuture,
		},
		"no claim: the writer may have become the holder": {
			request: makeUpdate("5").By(boris), wantRow: fence.RowUnclaimed,
		},
		"not strictly newer": {
			request: makeUpdate("6").Nonce("6/1"), cached: makeState().StrictlyNewer(), wantRow: fence.RowNotNewer,
		},
		"another token is stored": {
			request: makeUpdate("5").Extra("6"), wantRow: fence.RowMismatch,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := makeState()
			if tc.cached != nil {
				state = tc.cached
			}
			request, cached := tc.request.Obj(), state.Obj()
			verdict := fence.Judge(request, cached)
			if verdict.Row != tc.wantRow {
				t.Fatalf("row: want %s, got %s", tc.wantRow, verdict.Row)
			}
			if got := fence.Final(verdict, cached); got != tc.want {
				t.Errorf("final: want %t, got %t", tc.want, got)
			}
		})
	}
}
