package suite

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/fence"
)

// Refusal is what a client sees of a refusal.
type Refusal struct {
	metav1.Status

	Causes map[fence.CauseType]string
}

// Refused checks code, reason and message of a refusal, and returns it. The
// message must have all the parts.
func Refused(t *testing.T, err error, code int32, reason fence.Reason, parts ...string) Refusal {
	t.Helper()
	if err == nil {
		t.Fatalf("the request was admitted; want %d %s", code, reason)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("not an answer of the API server: %v", err)
	}
	got := Refusal{Status: status.Status(), Causes: map[fence.CauseType]string{}}
	if got.Code != code || got.Reason != metav1.StatusReason(reason) {
		t.Fatalf("refused with %d %s, want %d %s: %v", got.Code, got.Reason, code, reason, err)
	}
	for _, part := range parts {
		if !strings.Contains(got.Message, part) {
			t.Errorf("the message lacks %q: %s", part, got.Message)
		}
	}
	if got.Details != nil {
		for _, cause := range got.Details.Causes {
			got.Causes[fence.CauseType(cause.Type)] = cause.Message
		}
	}
	return got
}

// Admitted checks that a request was admitted.
func Admitted(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
}
