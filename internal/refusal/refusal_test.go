package refusal_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/refusal"
)

func stale() *metav1.Status {
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: 412, Reason: "FencingTokenStale", Message: "stop",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: "PresentedToken", Message: "4"},
			{Type: "CurrentToken", Message: "5"},
			{Type: "Holder", Message: "anna"},
			{Type: "TokenHolder", Message: "pod/anna"},
		}},
	}
}

var wantStale = fence.Refusal{
	Code: 412, Reason: fence.ReasonStale, Message: "stop",
	Facts: fence.Facts{Presented: 4, Current: 5, Holder: "anna", Writer: "pod/anna"},
}

func TestOf(t *testing.T) {
	cases := map[string]struct {
		status *metav1.Status
		want   fence.Refusal
		wantOK bool
	}{
		"a refusal with its facts": {status: stale(), want: wantStale, wantOK: true},
		"a 503 says when to try again": {
			status: &metav1.Status{Code: 503, Reason: "FenceUnavailable", Details: &metav1.StatusDetails{RetryAfterSeconds: 1}},
			want:   fence.Refusal{Code: 503, Reason: fence.ReasonUnavailable, RetryAfterSeconds: 1},
			wantOK: true,
		},
		"the explanation of a 422 is no fact": {
			status: &metav1.Status{Code: 422, Reason: "FencingTokenInvalid", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldValueInvalid, Message: "say it otherwise"},
			}}},
			want:   fence.Refusal{Code: 422, Reason: fence.ReasonInvalid},
			wantOK: true,
		},
		"a refusal without details": {
			status: &metav1.Status{Code: 428, Reason: "FencingTokenRequired"},
			want:   fence.Refusal{Code: 428, Reason: fence.ReasonRequired},
			wantOK: true,
		},
		"a conflict is the API server's own": {status: &metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict}},
		"a success":                          {status: &metav1.Status{Status: metav1.StatusSuccess}},
		"nothing":                            {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := refusal.Of(tc.status)
			if ok != tc.wantOK {
				t.Errorf("a refusal: %t, want %t", ok, tc.wantOK)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestOfError(t *testing.T) {
	cases := map[string]struct {
		err    error
		want   fence.Refusal
		wantOK bool
	}{
		"wrapped by those who passed it on": {
			err:    fmt.Errorf("reconcile: %w", &apierrors.StatusError{ErrStatus: *stale()}),
			want:   wantStale,
			wantOK: true,
		},
		"an error of the API server": {err: apierrors.NewNotFound(schema.GroupResource{}, "x")},
		"no answer at all":           {err: errors.New("connection refused")},
		"no error":                   {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := refusal.OfError(tc.err)
			if ok != tc.wantOK {
				t.Errorf("a refusal: %t, want %t", ok, tc.wantOK)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
