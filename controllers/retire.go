package controllers

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// retire marks the Leases that are labelled with a FencedLease's name and that
// it does not wrap: all of them, if it is gone (rule M10). The counter on them
// stays protected, and a later FencedLease goes on from it.
func (r *Reconciler) retire(ctx context.Context, fencedLease types.NamespacedName, wraps string) error {
	if fence.NeverFenced(fencedLease.Namespace, "", r.Namespace, false) != "" {
		return nil // whatever somebody wrote on a heartbeat of a node
	}
	var leases coordinationv1.LeaseList
	err := r.Client.List(ctx, &leases, client.InNamespace(fencedLease.Namespace),
		client.MatchingLabels{v1alpha1.LabelFencedBy: fencedLease.Name})
	if err != nil {
		return err
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if lease.Name == wraps || lease.Labels[v1alpha1.LabelRetired] == v1alpha1.RetiredTrue {
			continue
		}
		err := r.patch(ctx, lease, func(l *coordinationv1.Lease) { l.Labels[v1alpha1.LabelRetired] = v1alpha1.RetiredTrue })
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("retired a Lease that its FencedLease does not wrap", "lease", lease.Name)
	}
	return nil
}
