package webhooks

import (
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/bounded"
)

// refused is the answer that refuses a request. The API server hands its Status
// to the client as it is, with the webhook's name before the message.
func refused(req admission.Request, r *fence.Refusal) admission.Response {
	details := &metav1.StatusDetails{
		Name: storedOf(req).Name, Group: req.Resource.Group, Kind: req.Resource.Resource,
		RetryAfterSeconds: r.RetryAfterSeconds,
	}
	if r.Code == http.StatusUnprocessableEntity { // of such an answer, kubectl shows the causes only
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: string(r.Reason), Message: r.Message,
		})
	}
	for _, cause := range r.Facts.Causes() {
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(cause.Type), Field: string(cause.Type), Message: bounded.String(cause.Value, maxCause),
		})
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: r.Code,
			Reason: metav1.StatusReason(r.Reason), Message: r.Message, Details: details,
		},
		AuditAnnotations: map[string]string{"reason": string(r.Reason)},
	}}
}

// maxCause bounds the value of a cause: a holderIdentity has no limit of its own.
const maxCause = 4096

// undecodable is the answer to a review that makes no sense: the API server
// never sends one.
func undecodable(err error) admission.Response {
	return admission.Errored(http.StatusBadRequest, err)
}
