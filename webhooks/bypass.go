package webhooks

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// bypass asks the API server whether a user who asks to break the glass may.
type bypass struct {
	client client.Client
}

// judge is the verdict on a refused request that carries a reason to bypass.
func (b *bypass) judge(ctx context.Context, req admission.Request, request fence.Request, verdict fence.Verdict) fence.Verdict {
	allowed, err := b.allowed(ctx, req, request.FencedLeaseName())
	if err == nil && allowed {
		return fence.BreakGlass(verdict, request)
	}
	why := "; break-glass needs the verb bypass on fencedleases.fencedlease.io, which this user does not have"
	if err != nil {
		if readErrors.Allow() {
			log.FromContext(ctx).Error(err, "cannot ask whether a user may bypass")
		}
		why = "; break-glass was asked for, but whether this user may could not be found out"
	}
	refusal := *verdict.Refusal
	refusal.Message += why
	verdict.Refusal, verdict.BypassReason = &refusal, ""
	return verdict
}

func (b *bypass) allowed(ctx context.Context, req admission.Request, fencedLease string) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(req.UserInfo.Extra))
	for key, values := range req.UserInfo.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: req.UserInfo.Username, Groups: req.UserInfo.Groups, UID: req.UserInfo.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.GroupVersion.Group, Resource: "fencedleases", Verb: v1alpha1.VerbBypass,
			Namespace: req.Namespace, Name: fencedLease,
		},
	}}
	if err := b.client.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}
