package webhooks

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// mint stamps the token into the very write that acquires a fenced Lease, and
// keeps our keys on it as they were in every other write.
type mint struct {
	states   *States
	operator string // user name
}

var _ admission.Handler = (*mint)(nil)

// Handle answers for creates and updates of Leases.
func (m *mint) Handle(ctx context.Context, req admission.Request) admission.Response {
	write, meta, err := leaseWrite(req, m.operator)
	if err != nil {
		return undecodable(err)
	}
	plan := fence.PlanLease(write)
	leaseKeys := plan.Keys
	if plan.Mints {
		fl, refusal := m.wrappedBy(ctx, types.NamespacedName{Namespace: req.Namespace, Name: leaseKeys.FencedBy}, meta.Name)
		if refusal == nil {
			leaseKeys, refusal = plan.Mint(fl)
		}
		if refusal != nil {
			return refused(req, refusal)
		}
	}
	response := admission.Patched("", append(
		setStrings("/metadata/labels", meta.Labels, map[string]string{
			v1alpha1.LabelFencedBy: leaseKeys.FencedBy,
			v1alpha1.LabelRetired:  leaseKeys.Retired,
		}),
		setStrings("/metadata/annotations", meta.Annotations, map[string]string{
			v1alpha1.AnnotationToken:       leaseKeys.Token,
			v1alpha1.AnnotationTokenFor:    leaseKeys.TokenFor,
			v1alpha1.AnnotationTokenHolder: leaseKeys.TokenHolder,
		})...)...)
	if plan.Mints {
		response.AuditAnnotations = map[string]string{"token": leaseKeys.Token}
	}
	return response
}

// wrappedBy reads, live, the FencedLease that a Lease's label names.
func (m *mint) wrappedBy(ctx context.Context, key types.NamespacedName, leaseName string) (fence.FencedLease, *fence.Refusal) {
	fl, err := m.states.FencedLease(ctx, key)
	if err != nil {
		return fence.FencedLease{}, fence.CannotRead(key.Name, unreadable(err).Unreadable)
	}
	if fl == nil || fl.LeaseName() != leaseName {
		return fence.FencedLease{}, nil
	}
	// Those of the operator's own namespace never come here.
	allowControlPlane := fl.Spec.AllowControlPlane != nil && *fl.Spec.AllowControlPlane
	if fence.NeverFenced(key.Namespace, leaseName, "", allowControlPlane) != "" {
		return fence.FencedLease{}, nil
	}
	return fence.FencedLease{
		Exists:      true,
		StatusToken: fence.Token(fl.Status.Token),
		MinToken:    fence.Token(fl.Spec.MinToken),
	}, nil
}

// apiServerUser is the API server itself, which acquires Leases for others in
// coordinated leader election.
const apiServerUser = "system:apiserver"

// leaseWrite decodes a write of a Lease, and the metadata of the new Lease.
func leaseWrite(req admission.Request, operator string) (fence.LeaseWrite, metadata, error) {
	var updated lease
	if err := decode(req.Object.Raw, &updated); err != nil {
		return fence.LeaseWrite{}, metadata{}, err
	}
	write := fence.LeaseWrite{
		New:         updated.fenced(),
		Writer:      writerOf(req),
		ByOperator:  req.UserInfo.Username == operator,
		ByAPIServer: req.UserInfo.Username == apiServerUser,
	}
	if req.Operation == admissionv1.Update {
		var stored lease
		if err := decode(req.OldObject.Raw, &stored); err != nil {
			return fence.LeaseWrite{}, metadata{}, err
		}
		old := stored.fenced()
		write.Old = &old
	}
	return write, updated.Metadata, nil
}
