package fence_test

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
)

// The four ways, in the order in which they are tried.
func TestClaim(t *testing.T) {
	cases := map[string]struct {
		request *requestBuilder
		state   *stateBuilder // default: token 6, held by anna's Pod
		want    fence.Token
	}{
		// 1. The user extra.
		"the extra of an update":                   {request: makeUpdate("5").Extra("6"), want: 6},
		"the extra of a delete":                    {request: makeDelete("5").Extra("6"), want: 6},
		"the extra of a status write":              {request: makeStatus("5").Extra("6"), want: 6},
		"the extra goes before the annotation":     {request: makeUpdate("5").Token("6").Extra("4"), want: 4},
		"the extra goes before the identity":       {request: makeDelete("6").By(anna).Extra("4"), want: 4},
		"an extra that is malformed":               {request: makeUpdate("5").Extra("x"), want: fence.None},
		"an extra with two values counts for none": {request: makeUpdate("5").Extra("6", "6"), want: fence.None},

		// 2. The annotation, freshly presented.
		"a token that differs from the stored one":    {request: makeUpdate("5").Token("6"), want: 6},
		"a token on an object that has none":          {request: makeUpdate("").Token("6"), want: 6},
		"a create":                                    {request: makeCreate().Token("6"), want: 6},
		"a stale token is presented as well":          {request: makeUpdate("6").Token("5"), want: 5},
		"a nonce that begins with the token":          {request: makeUpdate("6").Nonce("6/1"), want: 6},
		"another nonce":                               {request: makeUpdate("6").StoredNonce("6/1").Nonce("6/2"), want: 6},
		"an empty rest will do":                       {request: makeUpdate("6").Nonce("6/"), want: 6},
		"the label goes on beside an old annotation":  {request: makeLabelling("6"), want: 6},
		"a token that is presented as the label goes": {request: makeUpdate("5").GuardedBy("").Token("6"), want: 6},

		// 3. The writer identity proves it.
		"the holder's Pod inherits current":   {request: makeUpdate("6").By(anna), want: 6},
		"the holder's Pod writes the status":  {request: makeStatus("6").By(anna), want: 6},
		"the holder's Pod deletes":            {request: makeDelete("5").By(anna), want: 6},
		"a certificate, where it is chosen":   {request: makeUpdate("6").By(annaCertificate), state: makeState().HeldBy("anna", annaCertificate).Identities(fence.KindCertificate), want: 6},
		"a certificate, where it is not":      {request: makeUpdate("6").By(annaCertificate), state: makeState().HeldBy("anna", annaCertificate), want: fence.None},
		"a Pod, where only certificates are":  {request: makeUpdate("6").By(anna), state: makeState().Identities(fence.KindCertificate), want: fence.None},
		"a user name never proves a token":    {request: makeUpdate("6").By(annaUser), state: makeState().HeldBy("anna", annaUser).Identities(fence.KindUser), want: fence.None},
		"another Pod":                         {request: makeUpdate("6").By(boris), want: fence.None},
		"another Pod deletes":                 {request: makeDelete("6").By(boris), want: fence.None},
		"the holder's Pod inherits an older":  {request: makeUpdate("5").By(anna), want: fence.None},
		"the holder's Pod leaves no token":    {request: makeUpdate("").By(anna), want: fence.None},
		"the holder's Pod creates without it": {request: makeCreate().By(anna), want: fence.None},
		"an unknown writer, an unknown holder": {
			request: makeDelete("6").By(""), state: makeState().HeldBy("anna", ""), want: fence.None,
		},
		"the token-holder of an older token than current": {
			request: makeDelete("6").By(anna), state: makeState().Status(7), want: fence.None,
		},
		"the token-holder on a Lease of another FencedLease": {
			request: makeDelete("6").By(anna), state: makeState().TakenBy("invoices"), want: fence.None,
		},
		"before the first term": {
			request: makeDelete("").By(anna), state: makeState().NoTerm().HeldBy("anna", anna), want: fence.None,
		},

		// 4. None: the trap of a bare comparison of annotations.
		"read-modify-write inherits the token":      {request: makeUpdate("6"), want: fence.None},
		"a status write cannot present by itself":   {request: makeStatus("6"), want: fence.None},
		"a status write with another token":         {request: makeStatus("5").Token("6"), want: fence.None},
		"a nonce that stays is inherited too":       {request: makeUpdate("6").StoredNonce("6/1").Nonce("6/1"), want: fence.None},
		"a nonce that goes":                         {request: makeUpdate("6").StoredNonce("6/1"), want: fence.None},
		"a nonce of another token":                  {request: makeUpdate("6").Nonce("5/1"), want: fence.None},
		"a nonce whose token only begins like ours": {request: makeUpdate("6").Nonce("61/1"), want: fence.None},
		"a nonce without a slash":                   {request: makeUpdate("6").Nonce("6"), want: fence.None},
		"a nonce without a token":                   {request: makeUpdate("").Nonce("6/1"), want: fence.None},
		"the annotation is taken off":               {request: makeUpdate("6").Token(""), want: fence.None},
		"a create without a token":                  {request: makeCreate(), want: fence.None},
		"a delete":                                  {request: makeDelete("6"), want: fence.None},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := makeState()
			if tc.state != nil {
				state = tc.state
			}
			if got := tc.request.Obj().Claim(state.Obj()); got != tc.want {
				t.Errorf("claim: want %s, got %s", tc.want, got)
			}
		})
	}
}

func TestFencedLeaseName(t *testing.T) {
	cases := map[string]struct {
		request fence.Request
		want    string
	}{
		"of the object that is created":            {request: makeCreate().GuardedBy("invoices").Obj(), want: "invoices"},
		"of the object that is deleted":            {request: makeDelete("").Obj(), want: payments},
		"the new label goes before the stored":     {request: makeUpdate("").GuardedBy("invoices").Obj(), want: "invoices"},
		"of the stored object as the label goes":   {request: makeUpdate("").GuardedBy("").Obj(), want: payments},
		"none, where neither object is guarded":    {request: makeLabelling("").GuardedBy("").Obj(), want: ""},
		"of the new object as the label is put on": {request: makeLabelling("").Obj(), want: payments},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.request.FencedLeaseName(); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
