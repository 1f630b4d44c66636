package fence_test

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
)

// The rows about a state that nothing can be compared with.

// G2: the FencedLease does not exist. The way out stays open.
func TestG2(t *testing.T) {
	refused := func(request *requestBuilder) verdictCase {
		return verdictCase{
			request: request, state: makeState().Missing(),
			wantRow: fence.RowNotFound, wantCode: 422, wantReason: fence.ReasonNotFound,
			wantSays: "create it, or take the label fencedlease.io/guarded-by off the object in a write of its own",
		}
	}
	warned := func(request *requestBuilder) verdictCase {
		return verdictCase{
			request: request, state: makeState().Missing(),
			wantRow: fence.RowNotFound, wantSays: `FencedLease "payments" does not exist: the write was not checked`,
		}
	}
	testVerdicts(t, map[string]verdictCase{
		"a create":                                     refused(makeCreate().Token("6")),
		"an update":                                    refused(makeUpdate("5").Token("6")),
		"a status write":                               refused(makeStatus("5").Extra("6")),
		"the label is put on":                          refused(makeLabelling("").Token("6").OnlyOurKeys()),
		"the label goes, and something else":           refused(makeUpdate("5").GuardedBy("")),
		"our keys change, and the label stays":         refused(makeUpdate("5").Token("6").OnlyOurKeys()),
		"finalizers go before the object is deleted":   refused(makeUpdate("5").OnlyFinalizers()),
		"finalizers and other things go in deletion":   refused(makeUpdate("5").InDeletion()),
		"the label goes":                               warned(makeUpdate("5").GuardedBy("").OnlyOurKeys()),
		"the label and its token go":                   warned(makeUpdate("5").GuardedBy("").Token("").OnlyOurKeys()),
		"a delete":                                     warned(makeDelete("5")),
		"finalizers go off an object in deletion":      warned(makeUpdate("5").OnlyFinalizers().InDeletion()),
		"an unchanged object":                          {request: makeUpdate("5").Nothing(), state: makeState().Missing(), wantRow: fence.RowUnchanged},
		"the same write once the FencedLease is there": {request: makeUpdate("5").Token("6"), wantRow: fence.RowAllowed},
	})
}

// G4: there is nothing to compare with. Fail closed.
func TestG4(t *testing.T) {
	testVerdicts(t, map[string]verdictCase{
		"nothing could be read in time": {
			request: makeUpdate("5").Token("6"), state: makeState().Unreadable("timeout"),
			wantRow: fence.RowUnreadable, wantCode: 503, wantReason: fence.ReasonUnavailable, wantSays: "(timeout)",
		},
		"the Lease is still retired": {
			request: makeUpdate("5").Token("6"), state: makeState().Retired(),
			wantRow: fence.RowUnreadable, wantCode: 503, wantReason: fence.ReasonUnavailable, wantSays: "about to be adopted again; try again",
		},
		"the Lease is another's: a 503 would make clients loop": {
			request: makeUpdate("5").Token("6"), state: makeState().TakenBy("invoices"),
			wantRow: fence.RowUnreadable, wantCode: 422, wantReason: fence.ReasonLeaseConflict, wantSays: `wrapped by FencedLease "invoices"`,
		},
		"the twin that is readable, adopted and ours": {
			request: makeUpdate("5").Token("6"), wantRow: fence.RowAllowed,
		},
	})
}

// G5: mark > current: the counter was lost.
func TestG5(t *testing.T) {
	refused := func(request *requestBuilder) verdictCase {
		return verdictCase{
			request: request,
			wantRow: fence.RowRegressed, wantCode: 422, wantReason: fence.ReasonRegressed,
			wantSays: "Set spec.minToken of the FencedLease above every mark, to at least 10",
		}
	}
	lost := refused(makeUpdate("9").Token("6"))
	lost.wantFacts = &fence.Facts{Presented: 6, Mark: 9, Current: 6, Holder: "anna", Writer: anna}
	testVerdicts(t, map[string]verdictCase{
		"under the newest token that is known": lost,
		"under the token of the mark":          refused(makeUpdate("9").Nonce("9/1")),
		"without a token":                      refused(makeUpdate("9")),
		"a delete":                             refused(makeDelete("9").Extra("6")),
		"a status write":                       refused(makeStatus("9").Extra("9")),
		"as the label goes":                    refused(makeUpdate("9").GuardedBy("").Token("6")),
		"nothing was ever minted": {
			request: makeUpdate("9"), state: makeState().NoTerm(),
			wantRow: fence.RowRegressed, wantCode: 422, wantReason: fence.ReasonRegressed, wantSays: "is none: the counter was lost",
		},
		"after minToken was raised":               {request: makeUpdate("9").Token("10"), state: makeState().Token(10), wantRow: fence.RowAllowed},
		"the mark is current":                     {request: makeUpdate("6").Nonce("6/1"), wantRow: fence.RowAllowed},
		"what stood there unguarded is no mark":   {request: makeLabelling("9").Token("6"), wantRow: fence.RowAllowed},
		"the status knows, though the Lease lags": {request: makeUpdate("9").Nonce("9/1"), state: makeState().Status(9), wantRow: fence.RowAllowed},
	})
}

// G6: no token was ever minted: there is no term to protect yet.
func TestG6(t *testing.T) {
	warned := func(request *requestBuilder) verdictCase {
		return verdictCase{
			request: request, state: makeState().NoTerm(),
			wantRow: fence.RowNoTermYet, wantSays: "was minted yet: the write was not checked",
		}
	}
	testVerdicts(t, map[string]verdictCase{
		"a create":                     warned(makeCreate()),
		"an update":                    warned(makeUpdate("")),
		"a status write":               warned(makeStatus("")),
		"a delete":                     warned(makeDelete("")),
		"the label goes on":            warned(makeLabelling("")),
		"before the Lease was adopted": {request: makeUpdate(""), state: makeState().Unfenced().Status(fence.None), wantRow: fence.RowNoTermYet, wantSays: "not checked"},
		"a create with a token": {
			request: makeCreate().Token("1"), state: makeState().NoTerm(),
			wantRow: fence.RowFuture, wantCode: 403, wantReason: fence.ReasonNeverIssued,
		},
		"a delete with a token": {
			request: makeDelete("").Extra("1"), state: makeState().NoTerm(),
			wantRow: fence.RowFuture, wantCode: 403, wantReason: fence.ReasonNeverIssued,
		},
		"once a token was minted": {
			request: makeUpdate(""),
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired,
		},
	})
}
