package webhooks

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fencedlease/fencedlease/fence"
)

// leaseCheck looks at fenced Leases as they would be stored: another mutating
// webhook may have run after mint (M8). And it keeps them while their
// FencedLease exists (M7).
type leaseCheck struct {
	states   *States
	operator string // user name
}

var _ admission.Handler = (*leaseCheck)(nil)

// Handle answers for creates, updates and deletes of Leases.
func (l *leaseCheck) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation == admissionv1.Delete {
		return l.handleDelete(ctx, req)
	}
	write, _, err := leaseWrite(req, l.operator)
	if err != nil {
		return undecodable(err)
	}
	if refusal := fence.CheckLease(write); refusal != nil {
		return refused(req, refusal)
	}
	if !isDryRun(req) && mintedIn(write) {
		mints.Inc()
		lastMint.SetToCurrentTime()
	}
	return admission.Allowed("")
}

// mintedIn says whether a Lease that passed the check has a new token. It is counted
// here and not where it is minted: there, the losers of a race come by, too.
func mintedIn(write fence.LeaseWrite) bool {
	token := write.New.CurrentToken()
	return token != fence.None && (write.Old == nil || token > write.Old.CurrentToken())
}

// handleDelete refuses while the FencedLease exists, retired or not: the counter
// would be lost. A namespace that goes away takes its Leases along.
func (l *leaseCheck) handleDelete(ctx context.Context, req admission.Request) admission.Response {
	var stored lease
	if err := decode(req.OldObject.Raw, &stored); err != nil {
		return undecodable(err)
	}
	leaseKeys, name := stored.fenced().Keys, stored.Metadata.Name // a request to delete a collection names none
	fl, err := l.states.FencedLease(ctx, types.NamespacedName{Namespace: req.Namespace, Name: leaseKeys.FencedBy})
	if err != nil {
		return refused(req, fence.CannotRead(leaseKeys.FencedBy, unreadable(err).Unreadable))
	}
	if fl == nil || fl.LeaseName() != name {
		return admission.Allowed("")
	}
	terminating, err := l.states.NamespaceTerminating(ctx, req.Namespace)
	if err != nil {
		return refused(req, fence.CannotRead(leaseKeys.FencedBy, unreadable(err).Unreadable))
	}
	if terminating {
		return admission.Allowed("")
	}
	return refused(req, fence.KeepLease(leaseKeys))
}
