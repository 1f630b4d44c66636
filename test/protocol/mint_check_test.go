package protocol

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// JSON pointers of our keys.
const (
	atFencedBy    = "/metadata/labels/fencedlease.io~1fenced-by"
	atRetired     = "/metadata/labels/fencedlease.io~1retired"
	atToken       = "/metadata/annotations/fencedlease.io~1token"
	atTokenFor    = "/metadata/annotations/fencedlease.io~1token-for"
	atTokenHolder = "/metadata/annotations/fencedlease.io~1token-holder"
)

// tampering is a webhook of somebody else that runs after mint, each time that
// mint ran, and does the same to all Leases of its team.
func tampering(w *suite.World, team string, patch ...suite.JSONPatch) {
	w.T.Helper()
	w.MutatingWebhook(team, admissionregistrationv1.IfNeededReinvocationPolicy, func(r *admissionv1.AdmissionRequest) []suite.JSONPatch {
		if r.Name != "payments" {
			return nil
		}
		return patch
	})
}

func ofTeam(team string) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) { l.Labels["team"] = team }
}

// A webhook that runs after mint cannot change what mint said: neither in an
// acquisition nor in a renewal, for which mint itself is never called.
func TestM8Tampering(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	kept := held("payments", "1", "worker", pod.Identity())

	const minted, changed = "the new token that the mint webhook gave it is missing", "were changed after the mint webhook set them"
	for team, tc := range map[string]struct {
		patch    suite.JSONPatch
		acquired string // the message of a refused acquisition
		renewed  string // of a refused renewal
	}{
		"token-removed":   {suite.JSONPatch{Op: "remove", Path: atToken}, minted, changed},
		"token-raised":    {suite.JSONPatch{Op: "replace", Path: atToken, Value: "999"}, "", changed},
		"token-lowered":   {suite.JSONPatch{Op: "replace", Path: atToken, Value: "1"}, minted, ""},
		"token-no-number": {suite.JSONPatch{Op: "replace", Path: atToken, Value: "02"}, minted, changed},
		"other-holder":    {suite.JSONPatch{Op: "replace", Path: atTokenFor, Value: "other"}, minted, changed},
		"no-holder":       {suite.JSONPatch{Op: "remove", Path: atTokenFor}, minted, changed},
		"other-writer":    {suite.JSONPatch{Op: "replace", Path: atTokenHolder, Value: "pod/other"}, minted, changed},
		"no-writer":       {suite.JSONPatch{Op: "remove", Path: atTokenHolder}, minted, changed},
		"other-fence":     {suite.JSONPatch{Op: "replace", Path: atFencedBy, Value: "other"}, minted, changed},
		"no-fence":        {suite.JSONPatch{Op: "remove", Path: atFencedBy}, minted, changed},
		"retired":         {suite.JSONPatch{Op: "add", Path: atRetired, Value: "true"}, minted, changed},
		"takes-the-lease": {suite.JSONPatch{Op: "replace", Path: "/spec/holderIdentity", Value: "other"}, "", minted},
		"ends-the-term":   {suite.JSONPatch{Op: "replace", Path: "/spec/leaseTransitions", Value: 77}, "", minted},
	} {
		tampering(w, team, tc.patch)
		acquire := func() error {
			_, err := pod.WriteLease("payments", ofTeam(team), func(l *coordinationv1.Lease) { suite.Take(l, "worker") })
			return err
		}
		renew := func() error {
			_, err := pod.WriteLease("payments", ofTeam(team), func(l *coordinationv1.Lease) { l.Spec.RenewTime = later(l.Spec.RenewTime) })
			return err
		}
		t.Run(team, func(t *testing.T) {
			if tc.renewed != "" {
				suite.Refused(t, renew(), 422, fence.ReasonInvalid, tc.renewed, "another mutating webhook")
			}
			if tc.acquired != "" {
				refusal := suite.Refused(t, acquire(), 422, fence.ReasonInvalid, tc.acquired, "another mutating webhook")
				if refusal.Causes[fence.CauseCurrent] != "1" || refusal.Causes[fence.CauseHolder] != "worker" {
					t.Errorf("causes %v", refusal.Causes)
				}
			}
			wantKeys(t, "in the end", w.Lease("payments"), kept)
		})
	}
}

// Where the other webhook runs once, mint runs again after it, and repairs what
// it did: the acquisition passes with its token. So does what concerns us not.
func TestM8WhatPasses(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	acquire := func(team string) *coordinationv1.Lease {
		t.Helper()
		lease, err := pod.WriteLease("payments", ofTeam(team), func(l *coordinationv1.Lease) { suite.Take(l, "worker") })
		suite.Admitted(t, err)
		return lease
	}

	tampering(w, "harmless", suite.JSONPatch{Op: "add", Path: "/metadata/labels/colour", Value: "blue"},
		suite.JSONPatch{Op: "replace", Path: "/spec/leaseDurationSeconds", Value: 60})
	lease := acquire("harmless")
	wantKeys(t, "beside a harmless webhook", lease, held("payments", "1", "worker", pod.Identity()))
	if lease.Labels["colour"] != "blue" || *lease.Spec.LeaseDurationSeconds != 60 {
		t.Errorf("what the other webhook did is lost: %+v", lease)
	}
	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed beside a harmless webhook", lease, held("payments", "1", "worker", pod.Identity()))

	once := admissionregistrationv1.NeverReinvocationPolicy
	w.MutatingWebhook("once", once, func(r *admissionv1.AdmissionRequest) []suite.JSONPatch {
		if r.Name != "payments" {
			return nil
		}
		return []suite.JSONPatch{{Op: "replace", Path: atToken, Value: "999"}, {Op: "remove", Path: atTokenFor}}
	})
	wantKeys(t, "repaired", acquire("once"), held("payments", "2", "worker", pod.Identity()))

	// A holder that another webhook puts in is the one that gets the token.
	w.MutatingWebhook("renames", once, func(r *admissionv1.AdmissionRequest) []suite.JSONPatch {
		if r.Name != "payments" {
			return nil
		}
		return []suite.JSONPatch{{Op: "replace", Path: "/spec/holderIdentity", Value: "renamed"}}
	})
	wantKeys(t, "renamed", acquire("renames"), held("payments", "3", "renamed", pod.Identity()))
}
