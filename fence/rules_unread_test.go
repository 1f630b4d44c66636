package fence_test

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
)

// The rows that need no value but the request's own.

func TestExempt(t *testing.T) {
	const (
		garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
		namespaceController = "system:serviceaccount:kube-system:namespace-controller"
		allControllers      = "system:kube-controller-manager"
	)
	testVerdicts(t, map[string]verdictCase{
		"the garbage collector deletes":     {request: makeDelete("6").User(garbageCollector), wantRow: fence.RowExempt},
		"the garbage collector updates":     {request: makeUpdate("6").User(garbageCollector), wantRow: fence.RowExempt},
		"the namespace controller deletes":  {request: makeDelete("6").User(namespaceController), wantRow: fence.RowExempt},
		"one user for all: owners and such": {request: makeUpdate("6").User(allControllers).OnlyOwnership(), wantRow: fence.RowExempt},
		"one user for all: anything else": {
			request: makeUpdate("6").User(allControllers),
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired,
		},
		"anybody else: owners and such": {
			request: makeUpdate("6").User("system:serviceaccount:prod:payments").OnlyOwnership(),
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired,
		},
		"the same name in another namespace": {
			request: makeDelete("6").User("system:serviceaccount:prod:generic-garbage-collector"),
			wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired,
		},
	})
}

func TestUnchanged(t *testing.T) {
	testVerdicts(t, map[string]verdictCase{
		"storage migration writes what is there": {request: makeUpdate("5").Nothing(), wantRow: fence.RowUnchanged},
		"one byte more is a write": {
			request: makeUpdate("5"),
			wantRow: fence.RowUnclaimed, wantCode: 412, wantReason: fence.ReasonStale,
		},
	})
}

func TestStatusKeys(t *testing.T) {
	refused := func(request *requestBuilder) verdictCase {
		return verdictCase{
			request: request,
			wantRow: fence.RowStatusKeys, wantCode: 422, wantReason: fence.ReasonInvalid, wantSays: "change them through the object itself",
		}
	}
	testVerdicts(t, map[string]verdictCase{
		"the token":    refused(makeStatus("6").Token("5")),
		"no token":     refused(makeStatus("6").Token("")),
		"the nonce":    refused(makeStatus("6").Nonce("6/1")),
		"the label":    refused(makeStatus("6").GuardedBy("")),
		"a reason":     refused(makeStatus("6").Bypass("restore")),
		"none of them": {request: makeStatus("6").Extra("6"), wantRow: fence.RowAllowed},
		"the object itself may": {
			request: makeUpdate("5").Token("6").Nonce("6/1"), wantRow: fence.RowAllowed,
		},
	})
}

// G1: a malformed token, in the user extra or as it would be stored.
func TestG1(t *testing.T) {
	refused := func(request *requestBuilder, says string) verdictCase {
		return verdictCase{
			request: request,
			wantRow: fence.RowInvalid, wantCode: 422, wantReason: fence.ReasonInvalid, wantSays: says,
		}
	}
	testVerdicts(t, map[string]verdictCase{
		"a word":                       refused(makeUpdate("5").Token("six"), `the annotation fencedlease.io/token is "six"`),
		"a leading zero":               refused(makeUpdate("5").Token("06"), "without sign, spaces or leading zeros"),
		"zero":                         refused(makeUpdate("5").Token("0"), "from 1 to 9007199254740991"),
		"beyond the largest":           refused(makeUpdate("5").Token("9007199254740992"), "from 1 to 9007199254740991"),
		"a malformed one is inherited": refused(makeUpdate("06"), "the annotation"),
		"a create":                     refused(makeCreate().Token("06"), "the annotation"),
		"as the label goes":            refused(makeUpdate("5").GuardedBy("").Token("06"), "the annotation"),
		"the extra":                    refused(makeUpdate("5").Extra("06"), `the user extra fencedlease.io/token is "06"`),
		"the extra of a delete":        refused(makeDelete("5").Extra(""), "the user extra"),
		"the extra of a status write":  refused(makeStatus("5").Extra("-6"), "the user extra"),
		"an extra with two values":     refused(makeUpdate("5").Extra("6", "6"), "exactly one value"),
		"an extra without a value":     refused(makeUpdate("5").emptyExtra(), "exactly one value"),

		"a well-formed annotation":                {request: makeUpdate("5").Token("6"), wantRow: fence.RowAllowed},
		"a well-formed extra":                     {request: makeUpdate("5").Stamped("6"), wantRow: fence.RowAllowed},
		"a malformed mark is replaced":            {request: makeUpdate("06").Token("6"), wantRow: fence.RowAllowed},
		"an object with a malformed mark deleted": {request: makeDelete("06").Extra("6"), wantRow: fence.RowAllowed},
	})
}

// emptyExtra is a user extra that is there, without a value.
func (b *requestBuilder) emptyExtra() *requestBuilder {
	b.request.TokenExtra = []string{}
	return b
}

// G3: from one FencedLease to another in one step.
func TestG3(t *testing.T) {
	testVerdicts(t, map[string]verdictCase{
		"in one step": {
			request: makeUpdate("5").GuardedBy("invoices").Token("6"),
			wantRow: fence.RowMoved, wantCode: 422, wantReason: fence.ReasonInvalid, wantSays: "take it off with a token of the first",
		},
		"first off":    {request: makeUpdate("5").GuardedBy("").Token("6"), wantRow: fence.RowAllowed},
		"then on":      {request: makeLabelling("5").Token("6"), wantRow: fence.RowAllowed},
		"off by habit": {request: makeUpdate("5").GuardedBy(""), wantRow: fence.RowUnclaimed, wantCode: 412, wantReason: fence.ReasonStale},
		"on by habit":  {request: makeLabelling(""), wantRow: fence.RowUnclaimed, wantCode: 428, wantReason: fence.ReasonRequired},
	})
}
