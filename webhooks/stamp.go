package webhooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// stamp stores the claim of a request's user extra as the object's token, so
// that any client can carry its claim in headers alone. Whether the claim is any
// good is for guard to say, which sees the object afterwards.
type stamp struct{}

var _ admission.Handler = stamp{}

// Handle answers for creates and updates whose user extra has a token.
func (stamp) Handle(_ context.Context, req admission.Request) admission.Response {
	meta, err := decodeMetadata(req.Object.Raw)
	if err != nil {
		return undecodable(err)
	}
	extra := extraOf(req, v1alpha1.ExtraToken)
	if len(extra) != 1 || meta.guarded().GuardedBy == nil {
		return admission.Allowed("")
	}
	if _, err := fence.ParseToken(extra[0]); err != nil {
		return admission.Allowed("")
	}
	return admission.Patched("", setStrings("/metadata/annotations", meta.Annotations,
		map[string]string{v1alpha1.AnnotationToken: extra[0]})...)
}
