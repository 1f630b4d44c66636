package controllers

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/keys"
)

const (
	// reconcileTimeout bounds one reconcile, all its calls together.
	reconcileTimeout = 30 * time.Second

	// probeAgain is the pause after which a FencedLease whose Lease could not be
	// fenced yet is tried again.
	probeAgain = 5 * time.Second

	// watchLag is the pause after which a FencedLease that was read from a watch
	// that lags is looked at again.
	watchLag = 50 * time.Millisecond

	// leaseNameIndex finds the FencedLeases that name a Lease.
	leaseNameIndex = "leaseName"
)

// Reconciler keeps a FencedLease and its Lease in step.
type Reconciler struct {
	Client    client.Client // reads from watches, writes to the API server
	Live      client.Reader // asks the API server each time
	Events    events.EventRecorder
	Namespace string // the operator's own; its Leases are never wrapped
}

// SetupWithManager watches FencedLeases and fenced Leases. A plain renewal of a
// Lease starts nothing.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.FencedLease{}, leaseNameIndex, func(o client.Object) []string {
		fl, ok := o.(*v1alpha1.FencedLease)
		if !ok {
			return nil
		}
		return []string{fl.LeaseName()}
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.FencedLease{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, tokenChanged{}))).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(r.concerned), builder.WithPredicates(handOver{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, ReconciliationTimeout: reconcileTimeout}).
		Complete(r)
}

// concerned are the FencedLeases that a Lease matters to: the one that its label
// names, and those that name it.
func (r *Reconciler) concerned(ctx context.Context, lease client.Object) []reconcile.Request {
	names := map[string]bool{}
	if name := lease.GetLabels()[v1alpha1.LabelFencedBy]; name != "" {
		names[name] = true
	}
	var naming v1alpha1.FencedLeaseList
	err := r.Client.List(ctx, &naming, client.InNamespace(lease.GetNamespace()), client.MatchingFields{leaseNameIndex: lease.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list the FencedLeases that name a Lease", "namespace", lease.GetNamespace(), "lease", lease.GetName())
	}
	for i := range naming.Items {
		names[naming.Items[i].Name] = true
	}
	requests := make([]reconcile.Request, 0, len(names))
	for name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: lease.GetNamespace(), Name: name}})
	}
	return requests
}

// handOver passes the updates of a Lease that change its holder, its term or one
// of our keys: without it, each renewal would start a reconcile.
type handOver struct{ predicate.Funcs }

// Update says whether anything but the renewal changed.
func (handOver) Update(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*coordinationv1.Lease)
	after, ok2 := e.ObjectNew.(*coordinationv1.Lease)
	if !ok1 || !ok2 {
		return true
	}
	return keys.OfLease(before.Labels, before.Annotations) != keys.OfLease(after.Labels, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Spec.HolderIdentity, after.Spec.HolderIdentity) ||
		!equality.Semantic.DeepEqual(before.Spec.AcquireTime, after.Spec.AcquireTime) ||
		!equality.Semantic.DeepEqual(before.Spec.LeaseTransitions, after.Spec.LeaseTransitions)
}

// tokenChanged passes the updates of a FencedLease that change its status.token:
// ahead of the Lease, as after a restore, it means that the token must rise.
type tokenChanged struct{ predicate.Funcs }

// Update says whether status.token changed.
func (tokenChanged) Update(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.FencedLease)
	after, ok2 := e.ObjectNew.(*v1alpha1.FencedLease)
	return !ok1 || !ok2 || before.Status.Token != after.Status.Token
}

// Reconcile brings one FencedLease and its Lease in step.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	fl := &v1alpha1.FencedLease{}
	err := r.Client.Get(ctx, req.NamespacedName, fl)
	if apierrors.IsNotFound(err) { // a watch lags: only a live read says that it is gone
		err = r.Live.Get(ctx, req.NamespacedName, fl)
	}
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, r.retire(ctx, req.NamespacedName, "")
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.retire(ctx, req.NamespacedName, fl.LeaseName()); err != nil {
		return reconcile.Result{}, err
	}
	return r.reconcile(ctx, fl)
}

// reconcile fences the Lease of a FencedLease that exists, and says in its status
// what came of it.
func (r *Reconciler) reconcile(ctx context.Context, fl *v1alpha1.FencedLease) (reconcile.Result, error) {
	found, err := r.wrap(ctx, fl)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := fl.DeepCopy()
	fl.Status = statusOf(fl, found)
	if !equality.Semantic.DeepEqual(before.Status, fl.Status) {
		err := r.Client.Status().Patch(ctx, fl, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) { // the watch lags: what it had would be said twice
			return reconcile.Result{RequeueAfter: watchLag}, nil
		}
		if err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	r.tell(before, fl, found)
	if found.reason == v1alpha1.ReasonMintNotInForce || found.reason == v1alpha1.ReasonNotWritable {
		return reconcile.Result{RequeueAfter: probeAgain}, nil
	}
	return reconcile.Result{}, nil
}

// standing is how a FencedLease and its Lease stand to each other.
type standing struct {
	reason  string // of the Ready condition
	message string
	lease   *coordinationv1.Lease // nil unless it is ours
	lost    bool                  // the Lease had a lesser token than the status
}

func (s standing) keys() fence.Keys {
	if s.lease == nil {
		return fence.Keys{}
	}
	return keys.OfLease(s.lease.Labels, s.lease.Annotations)
}

func (s standing) holder() string {
	if s.lease == nil || s.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *s.lease.Spec.HolderIdentity
}
