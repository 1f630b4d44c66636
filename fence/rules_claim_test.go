package fence_test

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
)

// The rows that compare the claim with the mark and with current.

// G7: no claim.
func TestG7(t *testing.T) {
	required := func(request *requestBuilder, says string) verdictCase {
		return verdictCase{
			request: request,
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired, wantSays: says,
		}
	}
	stale := func(request *requestBuilder) verdictCase {
		return verdictCase{
			request: request,
			wantRow: fence.RowUnclaimed, wantCode: 412, wantReason: fence.ReasonStale, wantSays: "if you are a former leader, stop",
			wantFacts: &fence.Facts{Mark: 5, Current: 6, Holder: "anna", Writer: anna},
		}
	}
	holder := fence.Facts{Mark: 5, Current: 6, Holder: "anna", Writer: anna}
	testVerdicts(t, map[string]verdictCase{
		"an inherited token is no claim": required(makeUpdate("6"), "a token that the write merely inherits is no claim"),
		"no token anywhere":              required(makeUpdate(""), "present yours in the annotation fencedlease.io/token"),
		"a create":                       required(makeCreate(), "or in the user extra"),
		"the annotation is taken off":    required(makeUpdate("6").Token(""), "present yours"),
		"the label is put on":            required(makeLabelling(""), "present yours"),
		"the label is taken off":         required(makeUpdate("6").GuardedBy(""), "present yours"),
		"a delete":                       required(makeDelete("5"), "present yours in the user extra"),
		"a status write":                 required(makeStatus("6"), "present yours in the user extra"),
		"finalizers, and not in deletion": required(
			makeUpdate("6").OnlyFinalizers(), "present yours"),
		"other things, in deletion": required(makeUpdate("6").InDeletion(), "present yours"),
		"the user name of the holder": {
			request: makeUpdate("6").By(annaUser), state: makeState().HeldBy("anna", annaUser),
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired, wantSays: "you hold the current token: present 6",
		},

		"a former leader, as far as one can tell": stale(makeUpdate("5").By(boris)),
		"the same through the status":             stale(makeStatus("5").By(boris)),
		"the same as the label goes":              stale(makeUpdate("5").GuardedBy("").By(boris)),

		"a good leader does not step down": {
			request: makeUpdate("5").By(anna),
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired, wantFacts: &holder,
			wantSays: "you hold the current token: present 6 in the annotation fencedlease.io/token",
		},
		"a good leader creates without it": {
			request: makeCreate().By(anna),
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired, wantSays: "present 6",
		},
		"a good leader writes the status": {
			request: makeStatus("5").By(anna),
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired, wantSays: "present 6 in the user extra",
		},

		"finalizers go off an object in deletion": {
			request: makeUpdate("5").OnlyFinalizers().InDeletion().By(boris), wantRow: fence.RowAllowed,
			wantFacts: &holder,
		},
		"a claim": {request: makeUpdate("5").Token("6"), wantRow: fence.RowAllowed},
	})
}

// G8: a token that was never minted would lock everyone out.
func TestG8(t *testing.T) {
	refused := func(request *requestBuilder) verdictCase {
		return verdictCase{
			request: request,
			wantRow: fence.RowFuture, wantCode: 403, wantReason: fence.ReasonNeverIssued,
			wantSays: "token 7 was never issued: the newest of FencedLease \"payments\" is 6. Take the token from the Lease",
		}
	}
	testVerdicts(t, map[string]verdictCase{
		"a forged claim":               refused(makeUpdate("6").Token("7")),
		"a forged create":              refused(makeCreate().Token("7")),
		"in the extra":                 refused(makeUpdate("6").Stamped("7")),
		"in the extra of a delete":     refused(makeDelete("6").Extra("7")),
		"stored beside a good claim":   refused(makeUpdate("5").Extra("6").Token("7")),
		"as the label goes":            refused(makeUpdate("6").GuardedBy("").Token("7")),
		"beside an old one, unguarded": refused(makeLabelling("7")),
		"the largest": {
			request: makeUpdate("6").Token("9007199254740991"),
			wantRow: fence.RowFuture, wantCode: 403, wantReason: fence.ReasonNeverIssued,
		},
		"the newest": {request: makeUpdate("5").Token("6"), wantRow: fence.RowAllowed},
	})
}

// G9: the late writer.
func TestG9(t *testing.T) {
	refused := func(request *requestBuilder) verdictCase {
		return verdictCase{
			request: request,
			wantRow: fence.RowStale, wantCode: 412, wantReason: fence.ReasonStale,
			wantSays: `token 5 is stale: the newest is 6, held by "anna". You are no longer the leader: stop`,
		}
	}
	late := refused(makeUpdate("6").Token("5").By(boris))
	late.wantFacts = &fence.Facts{Presented: 5, Mark: 6, Current: 6, Holder: "anna", Writer: anna}
	testVerdicts(t, map[string]verdictCase{
		"below the mark":                      late,
		"below current, at the mark":          refused(makeUpdate("5").Nonce("5/1")),
		"below current, above the mark":       refused(makeUpdate("4").Token("5")),
		"a create":                            refused(makeCreate().Token("5")),
		"a delete":                            refused(makeDelete("5").Extra("5")),
		"a status write":                      refused(makeStatus("5").Extra("5")),
		"in headers":                          refused(makeUpdate("5").Stamped("5")),
		"the label goes on":                   refused(makeLabelling("").Token("5")),
		"the label goes on beside an old one": refused(makeLabelling("5")),
		"the label goes off":                  refused(makeUpdate("6").GuardedBy("").Token("5")),
		"even by the holder of the newest":    refused(makeUpdate("5").Stamped("5").By(anna)),
		"even to take finalizers off":         refused(makeUpdate("5").OnlyFinalizers().InDeletion().Extra("5")),
		"the holder is unknown without a Lease": {
			request: makeUpdate("5").Nonce("5/1"), state: makeState().Unfenced(),
			wantRow: fence.RowStale, wantCode: 412, wantReason: fence.ReasonStale, wantSays: "the newest is 6. You are no longer",
		},
		"the newest": {request: makeUpdate("5").Token("6"), wantRow: fence.RowAllowed},
	})
}

// G10: one write per object and term, where tokenOrder is StrictlyNewer.
func TestG10(t *testing.T) {
	refused := func(request *requestBuilder) verdictCase {
		return verdictCase{
			request: request, state: makeState().StrictlyNewer(),
			wantRow: fence.RowNotNewer, wantCode: 412, wantReason: fence.ReasonStale, wantSays: "token 6 already wrote this object",
		}
	}
	allowed := func(request *requestBuilder) verdictCase {
		return verdictCase{request: request, state: makeState().StrictlyNewer(), wantRow: fence.RowAllowed}
	}
	testVerdicts(t, map[string]verdictCase{
		"a second write":                      refused(makeUpdate("6").Nonce("6/1")),
		"a second write in headers":           refused(makeUpdate("6").Stamped("6")),
		"a second write by identity":          refused(makeUpdate("6").By(anna)),
		"a status write after it":             refused(makeStatus("6").Extra("6")),
		"the first write":                     allowed(makeUpdate("5").Token("6")),
		"the first write of all":              allowed(makeUpdate("").Token("6")),
		"a create":                            allowed(makeCreate().Token("6")),
		"a status write before the first":     allowed(makeStatus("5").Extra("6")),
		"a delete":                            allowed(makeDelete("6").Extra("6")),
		"the label goes":                      allowed(makeUpdate("6").GuardedBy("").Nonce("6/1")),
		"another takes its finalizer off":     allowed(makeUpdate("6").OnlyFinalizers().InDeletion()),
		"a second write, if NotOlder will do": {request: makeUpdate("6").Nonce("6/1"), wantRow: fence.RowAllowed},
	})
}

// G11: what is stored must be what was claimed.
func TestG11(t *testing.T) {
	refused := func(request *requestBuilder, says string) verdictCase {
		return verdictCase{
			request: request,
			wantRow: fence.RowMismatch, wantCode: 422, wantReason: fence.ReasonInvalid, wantSays: says,
		}
	}
	sealFirst := func(request *requestBuilder) verdictCase {
		c := refused(request, "seal the object first, by writing token 6 to its annotation fencedlease.io/token")
		c.state = makeState().Cached()
		return c
	}
	testVerdicts(t, map[string]verdictCase{
		"another token is stored":     refused(makeUpdate("5").Extra("6"), `must be "6": it must be the token that the request presents`),
		"a smaller token is stored":   refused(makeUpdate("5").Extra("6").Token("4"), `must be "6"`),
		"no token is stored":          refused(makeUpdate("5").Extra("6").Token(""), `must be "6"`),
		"a create that stores none":   refused(makeCreate().Extra("6"), `must be "6"`),
		"the label without its token": refused(makeLabelling("").Extra("6"), `must be "6"`),
		"an unclaimed write lowers the mark": refused(
			makeUpdate("5").Token("").OnlyFinalizers().InDeletion(), `must be "5": a write without a claim leaves the mark exactly as it was`),

		"what is claimed is stored":         {request: makeUpdate("5").Stamped("6"), wantRow: fence.RowAllowed},
		"an unclaimed write leaves it":      {request: makeUpdate("5").OnlyFinalizers().InDeletion(), wantRow: fence.RowAllowed},
		"an unclaimed write leaves none":    {request: makeUpdate("").OnlyFinalizers().InDeletion(), wantRow: fence.RowAllowed},
		"an object that is guarded no more": {request: makeUpdate("5").GuardedBy("").Extra("6").Token("4"), wantRow: fence.RowAllowed},

		"Cached: a status write above the mark": sealFirst(makeStatus("5").Extra("6")),
		"Cached: a delete above the mark":       sealFirst(makeDelete("5").Extra("6")),
		"Cached: a delete without a mark":       sealFirst(makeDelete("").Extra("6")),
		"Cached: a delete by identity":          sealFirst(makeDelete("5").By(anna)),

		"Cached: a status write once it is sealed": {request: makeStatus("6").Extra("6"), state: makeState().Cached(), wantRow: fence.RowAllowed},
		"Cached: a delete once it is sealed":       {request: makeDelete("6").Extra("6"), state: makeState().Cached(), wantRow: fence.RowAllowed},
		"Cached: the object itself":                {request: makeUpdate("5").Token("6"), state: makeState().Cached(), wantRow: fence.RowAllowed},
		"Linearizable: a delete above the mark":    {request: makeDelete("5").Extra("6"), wantRow: fence.RowAllowed},
	})
}
