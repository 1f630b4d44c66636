package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/internal/bounded"
)

// maxIdentity is the MaxLength of the strings in status.holder; a Lease has none.
const maxIdentity = 4096

// statusOf is the status of a FencedLease that stands so to its Lease.
func statusOf(fl *v1alpha1.FencedLease, found standing) v1alpha1.FencedLeaseStatus {
	status := *fl.Status.DeepCopy()
	status.ObservedGeneration = fl.Generation
	status.Token = max(status.Token, int64(found.keys().CurrentToken()))
	status.Holder, status.AcquireTime = v1alpha1.Holder{}, nil
	if holder := found.holder(); holder != "" {
		status.Holder.Identity = bounded.String(holder, maxIdentity)
		if found.keys().TokenFor == holder {
			status.Holder.Writer = bounded.String(found.keys().TokenHolder, maxIdentity)
		}
		status.AcquireTime = found.lease.Spec.AcquireTime
	}
	for _, condition := range []metav1.Condition{readyOf(found), heldOf(found)} {
		condition.ObservedGeneration = fl.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

func readyOf(found standing) metav1.Condition {
	status := metav1.ConditionFalse
	if found.reason == v1alpha1.ReasonFenced {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: found.reason, Message: found.message}
}

func heldOf(found standing) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionHeld, Status: metav1.ConditionFalse}
	switch {
	case found.lease == nil:
		condition.Status = metav1.ConditionUnknown
		condition.Reason, condition.Message = v1alpha1.ReasonNotFenced, "the FencedLease is not Ready"
	case found.holder() == "":
		condition.Reason, condition.Message = v1alpha1.ReasonNoHolder, "nobody holds the Lease"
	case found.keys().TokenFor != found.holder():
		condition.Reason, condition.Message = v1alpha1.ReasonTokenPending, "the holder gets a token with its next renewal"
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = v1alpha1.ReasonHeld, "the holder has the current token"
	}
	return condition
}

// ready says that the FencedLease was fenced when it was last looked at.
func ready(fl *v1alpha1.FencedLease) bool {
	return meta.IsStatusConditionTrue(fl.Status.Conditions, v1alpha1.ConditionReady)
}

// tell emits the Events of what changed, once the status says it too.
func (r *Reconciler) tell(before, after *v1alpha1.FencedLease, found standing) {
	was, is := before.Status, after.Status
	if is.Token > was.Token && is.Holder.Identity != "" {
		r.Events.Eventf(after, nil, corev1.EventTypeNormal, "Acquired", "Mint", "token %d for %s", is.Token, brief(is.Holder.Identity))
	}
	if was.Holder.Identity != "" && is.Holder.Identity == "" && found.lease != nil {
		r.Events.Eventf(after, nil, corev1.EventTypeNormal, "Released", "Observe", "%s released the Lease after token %d", brief(was.Holder.Identity), is.Token)
	}
	if found.lost {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, "TokenRegressed", "Repair",
			"the Lease had a lesser token than %d, as after a restore or a deletion: the next term goes on from there", was.Token)
	}
	if found.reason == v1alpha1.ReasonLeaseConflict && reasonOf(was.Conditions) != v1alpha1.ReasonLeaseConflict {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, "LeaseConflict", "Adopt", "%s", brief(found.message))
	}
}

// brief fits a text into the note of an Event, which has at most 1024 bytes.
func brief(s string) string { return bounded.String(s, 768) }

// reasonOf is the reason of the Ready condition; "" if there is none.
func reasonOf(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}
