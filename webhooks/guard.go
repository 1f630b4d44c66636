package webhooks

import (
	"bytes"
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// guard decides about writes to guarded objects. It runs inside the API server's
// compare-and-swap loop, on the stored object whose revision is then compared.
type guard struct {
	states   *States
	bypass   *bypass
	recorder *recorder
}

var _ admission.Handler = (*guard)(nil)

// Handle answers for creates, updates and deletes of guarded objects.
func (g *guard) Handle(ctx context.Context, req admission.Request) admission.Response {
	request, err := guardRequest(req)
	if err != nil {
		return undecodable(err)
	}
	verdict := g.exempt(ctx, req, g.judge(ctx, req.Namespace, request))
	if !verdict.Allowed() && verdict.BypassReason != "" {
		verdict = g.bypass.judge(ctx, req, request, verdict)
	}
	g.recorder.record(ctx, req, request.FencedLeaseName(), verdict)
	if verdict.Row == fence.RowAllowed && !isDryRun(req) && isSeal(req, request) {
		seals.Inc()
	}
	return verdictResponse(req, verdict)
}

// judge reads as little as the verdict needs: nothing, then the watches, then
// the API server.
func (g *guard) judge(ctx context.Context, namespace string, request fence.Request) fence.Verdict {
	if verdict, ok := fence.JudgeAlone(request); ok {
		return verdict
	}
	key := types.NamespacedName{Namespace: namespace, Name: request.FencedLeaseName()}
	if cached, ok := g.states.Cached(ctx, key); ok {
		if verdict := fence.Judge(request, cached); fence.Final(verdict, cached) {
			savedReads.WithLabelValues(savedByCache).Add(2) // of a FencedLease and of its Lease
			return verdict
		}
	}
	return fence.Judge(request, g.states.Live(ctx, key))
}

// exempt admits the deletes of a namespace that goes away. Whether it does is
// read only for a delete that would be refused.
func (g *guard) exempt(ctx context.Context, req admission.Request, verdict fence.Verdict) fence.Verdict {
	if verdict.Allowed() || req.Operation != admissionv1.Delete {
		return verdict
	}
	terminating, err := g.states.NamespaceTerminating(ctx, req.Namespace)
	if err != nil || !terminating { // unknown is not terminating: the refusal stands
		return verdict
	}
	return fence.Verdict{Row: fence.RowExempt, Facts: verdict.Facts}
}

// guardRequest decodes a write to a guarded object.
func guardRequest(req admission.Request) (fence.Request, error) {
	request := fence.Request{
		Operation:   fence.Operation(req.Operation),
		Subresource: req.SubResource,
		Username:    req.UserInfo.Username,
		Writer:      writerOf(req),
		TokenExtra:  extraOf(req, v1alpha1.ExtraToken),
		BypassExtra: extraOf(req, v1alpha1.ExtraBypass),
	}
	if req.Operation != admissionv1.Delete {
		meta, err := decodeMetadata(req.Object.Raw)
		if err != nil {
			return fence.Request{}, err
		}
		request.New = meta.guarded()
	}
	if req.Operation != admissionv1.Create {
		meta, err := decodeMetadata(req.OldObject.Raw)
		if err != nil {
			return fence.Request{}, err
		}
		request.Old = meta.guarded()
	}
	if req.Operation != admissionv1.Update {
		return request, nil
	}
	if bytes.Equal(req.OldObject.Raw, req.Object.Raw) {
		request.Change.None = true
		return request, nil
	}
	var err error
	if request.NeedsChange() {
		request.Change, err = changeOf(req.OldObject.Raw, req.Object.Raw)
	}
	return request, err
}

// isSeal says whether a write changes nothing but the token of a guarded object.
// Most writes leave the token as it is: only the others are looked at closely.
func isSeal(req admission.Request, request fence.Request) bool {
	if request.Old == nil || request.New == nil || request.Subresource != "" ||
		ptr.Equal(request.Old.Token, request.New.Token) || !ptr.Equal(request.Old.GuardedBy, request.New.GuardedBy) {
		return false
	}
	change, err := changeOf(req.OldObject.Raw, req.Object.Raw)
	return err == nil && change.OnlyOurKeys
}

// writerOf is the writer identity of a request.
func writerOf(req admission.Request) fence.Identity {
	extra := make(map[string][]string, len(req.UserInfo.Extra))
	for key, values := range req.UserInfo.Extra {
		extra[key] = values
	}
	return fence.IdentityOf(req.UserInfo.Username, extra)
}

func extraOf(req admission.Request, key string) []string {
	return req.UserInfo.Extra[key]
}

func verdictResponse(req admission.Request, verdict fence.Verdict) admission.Response {
	response := admission.Allowed("")
	if !verdict.Allowed() {
		response = refused(req, verdict.Refusal)
	}
	if verdict.Warning != "" {
		response = response.WithWarnings(verdict.Warning)
	}
	response.AuditAnnotations = auditAnnotations(verdict)
	return response
}

func auditAnnotations(verdict fence.Verdict) map[string]string {
	annotations := map[string]string{"row": string(verdict.Row)}
	for _, cause := range verdict.Facts.Causes() {
		annotations[string(cause.Type)] = brief(cause.Value)
	}
	switch {
	case verdict.Refusal != nil:
		annotations["reason"] = string(verdict.Refusal.Reason)
	case verdict.Warned:
		annotations["warned"] = string(verdict.Refused.Reason)
	case verdict.BypassReason != "":
		annotations["bypass"] = brief(verdict.BypassReason)
	}
	return annotations
}
