package controllers

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/bounded"
	"github.com/fencedlease/fencedlease/internal/keys"
)

// wrap makes the Lease of a FencedLease its own: it creates the Lease, or puts
// our label on it, and asks for a mint where the token must rise under a holder.
func (r *Reconciler) wrap(ctx context.Context, fl *v1alpha1.FencedLease) (standing, error) {
	allowControlPlane := fl.Spec.AllowControlPlane != nil && *fl.Spec.AllowControlPlane
	if why := fence.NeverFenced(fl.Namespace, fl.LeaseName(), r.Namespace, allowControlPlane); why != "" {
		return standing{reason: v1alpha1.ReasonLeaseNotAllowed, message: why}, nil
	}
	lease := &coordinationv1.Lease{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: fl.Namespace, Name: fl.LeaseName()}, lease)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, fl)
	}
	if err != nil {
		return standing{}, err
	}
	leaseKeys := keys.OfLease(lease.Labels, lease.Annotations)
	switch fence.LeaseStateOf(leaseKeys, fl.Name) {
	case fence.LeaseTaken:
		return standing{
			reason:  v1alpha1.ReasonLeaseConflict,
			message: fmt.Sprintf("Lease %s is wrapped by FencedLease %s, which keeps it: delete one of the two", lease.Name, leaseKeys.FencedBy),
		}, nil
	case fence.LeaseOurs:
		return r.keep(ctx, fl, lease)
	default:
		return r.adopt(ctx, fl, lease)
	}
}

// create makes a Lease that nobody holds yet.
func (r *Reconciler) create(ctx context.Context, fl *v1alpha1.FencedLease) (standing, error) {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fl.Namespace, Name: fl.LeaseName(),
			Labels: map[string]string{v1alpha1.LabelFencedBy: fl.Name},
		},
		// An empty holder, not an absent one: coordinated leader election in
		// kube-apiserver (1.37) crashes on a Lease without the field.
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new(string), LeaseDurationSeconds: &fl.Spec.LeaseDurationSeconds},
	}
	probe := lease.DeepCopy()
	probe.Annotations = map[string]string{v1alpha1.AnnotationToken: probeToken}
	if obstacle, err := obstacleIn(probe, r.Client.Create(ctx, probe, client.DryRunAll)); obstacle.reason != "" || err != nil {
		return obstacle, err
	}
	if err := r.Client.Create(ctx, lease); err != nil {
		return standing{}, err
	}
	return fenced(lease, fl.Name, fl.Status.Token != 0), nil
}

// adopt puts our label on a Lease that has none, or takes it over from a
// FencedLease that is gone. A holder gets its token in that very write.
func (r *Reconciler) adopt(ctx context.Context, fl *v1alpha1.FencedLease, lease *coordinationv1.Lease) (standing, error) {
	if obstacle, err := r.probe(ctx, fl, lease); obstacle.reason != "" || err != nil {
		return obstacle, err
	}
	before := keys.OfLease(lease.Labels, lease.Annotations)
	lost := fl.Status.Token != 0 && (!before.Fenced() || int64(before.CurrentToken()) < fl.Status.Token)
	if err := r.patch(ctx, lease, func(l *coordinationv1.Lease) { label(l, fl.Name) }); err != nil {
		return standing{}, err
	}
	return fenced(lease, fl.Name, lost), nil
}

// keep looks after a Lease that is ours. Where its token must rise under a
// holder (minToken was raised, or the Lease was restored from a backup), it
// clears token-for: the holder's next renewal is then given a new token, so that
// the holder knows before anyone checks.
func (r *Reconciler) keep(ctx context.Context, fl *v1alpha1.FencedLease, lease *coordinationv1.Lease) (standing, error) {
	if !ready(fl) {
		if obstacle, err := r.probe(ctx, fl, lease); obstacle.reason != "" || err != nil {
			return obstacle, err
		}
	}
	found := fenced(lease, fl.Name, false)
	token := int64(found.keys().CurrentToken())
	found.lost = token < fl.Status.Token
	if found.keys().TokenFor == "" || token >= max(fl.Status.Token, fl.Spec.MinToken) {
		return found, nil
	}
	err := r.patch(ctx, lease, func(l *coordinationv1.Lease) { delete(l.Annotations, v1alpha1.AnnotationTokenFor) })
	return found, err
}

// fenced is the standing of a Lease that the API server says is ours; lost, if it
// had a lesser token than the status.
func fenced(lease *coordinationv1.Lease, fencedLease string, lost bool) standing {
	if keys.OfLease(lease.Labels, lease.Annotations).FencedBy != fencedLease {
		return standing{
			reason:  v1alpha1.ReasonMintNotInForce,
			message: "something took the label " + v1alpha1.LabelFencedBy + " off Lease " + lease.Name + " as it was written: look for another mutating webhook on leases",
		}
	}
	return standing{
		reason:  v1alpha1.ReasonFenced,
		message: "acquisitions of Lease " + lease.Name + " are fenced",
		lease:   lease,
		lost:    lost,
	}
}

// label makes a Lease that of the named FencedLease.
func label(lease *coordinationv1.Lease, fencedLease string) {
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	lease.Labels[v1alpha1.LabelFencedBy] = fencedLease
	delete(lease.Labels, v1alpha1.LabelRetired)
}

// patch changes the metadata of a Lease, if nobody changed it since it was read.
// Only metadata goes over the wire: fields that this program does not know stay.
func (r *Reconciler) patch(ctx context.Context, lease *coordinationv1.Lease, change func(*coordinationv1.Lease), opts ...client.PatchOption) error {
	before := lease.DeepCopy()
	change(lease)
	return r.Client.Patch(ctx, lease, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), opts...)
}

// probeToken is a token that the mint webhook never lets through.
const probeToken = "0"

// probe asks the API server, by a dry run that forges a token, whether it calls
// the mint webhook for this Lease. It returns what keeps an acquisition from
// being fenced; its reason is "" if nothing does.
func (r *Reconciler) probe(ctx context.Context, fl *v1alpha1.FencedLease, lease *coordinationv1.Lease) (standing, error) {
	forged := lease.DeepCopy()
	err := r.patch(ctx, forged, func(l *coordinationv1.Lease) {
		label(l, fl.Name)
		if l.Annotations == nil {
			l.Annotations = map[string]string{}
		}
		l.Annotations[v1alpha1.AnnotationToken] = probeToken
	}, client.DryRunAll)
	return obstacleIn(forged, err)
}

// obstacleIn reads the answer to a probe.
func obstacleIn(answer *coordinationv1.Lease, err error) (standing, error) {
	switch {
	case apierrors.IsInternalError(err): // a webhook that cannot be called
		return standing{
			reason:  v1alpha1.ReasonMintNotInForce,
			message: "the mint webhook cannot be called yet: " + bounded.String(err.Error(), maxMessage),
		}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err): // a policy, a quota, another webhook
		return standing{
			reason:  v1alpha1.ReasonNotWritable,
			message: "the API server refuses to let the operator write the Lease: " + bounded.String(err.Error(), maxMessage),
		}, nil
	case err != nil:
		return standing{}, err
	case answer.Annotations[v1alpha1.AnnotationToken] == probeToken:
		return standing{
			reason:  v1alpha1.ReasonMintNotInForce,
			message: "the API server does not call the mint webhook for this Lease: is the MutatingWebhookConfiguration fencedlease installed?",
		}, nil
	}
	return standing{}, nil
}

// maxMessage bounds what a condition repeats of an error.
const maxMessage = 1024
