// Package refusal turns what a client got back from the API server into the
// values of package fence. It is the inverse of the answer that the webhooks give.
package refusal

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/fence"
)

// Of is the refusal that a Status tells of; false if it is none of ours.
func Of(status *metav1.Status) (fence.Refusal, bool) {
	if status == nil || !fence.Reason(status.Reason).Known() {
		return fence.Refusal{}, false
	}
	refusal := fence.Refusal{
		Code:    status.Code,
		Reason:  fence.Reason(status.Reason),
		Message: status.Message,
	}
	if details := status.Details; details != nil {
		refusal.RetryAfterSeconds = details.RetryAfterSeconds
		causes := make([]fence.Cause, 0, len(details.Causes))
		for _, cause := range details.Causes {
			causes = append(causes, fence.Cause{Type: fence.CauseType(cause.Type), Value: cause.Message})
		}
		refusal.Facts = fence.FactsOf(causes)
	}
	return refusal, true
}

// OfError is the refusal that an error of a Kubernetes client tells of, however
// deep it is wrapped; false if it is none of ours.
func OfError(err error) (fence.Refusal, bool) {
	var failure apierrors.APIStatus
	if !errors.As(err, &failure) {
		return fence.Refusal{}, false
	}
	status := failure.Status()
	return Of(&status)
}
