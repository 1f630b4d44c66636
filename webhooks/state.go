package webhooks

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/keys"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// readTimeout is the deadline of one live read.
const readTimeout = 3 * time.Second

// States reads what requests are judged against: FencedLeases and their Leases.
type States struct {
	live   client.Reader // asks the API server each time
	cache  client.Reader // FencedLeases and fenced Leases, from watches
	leases *coalescer[types.NamespacedName, fence.Keys]
}

// NewStates reads with live and cache.
func NewStates(live, cache client.Reader) *States {
	live = countedReader{live}
	return &States{
		live:  live,
		cache: cache,
		leases: newCoalescer(readTimeout, func(ctx context.Context, key types.NamespacedName) (fence.Keys, error) {
			lease := &metav1.PartialObjectMetadata{}
			lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
			return leaseKeys(ctx, live, key, lease)
		}),
	}
}

// Cached is the state as the watches have it; false if they have no FencedLease
// or no Lease of that name.
func (s *States) Cached(ctx context.Context, key types.NamespacedName) (fence.State, bool) {
	fl, err := fencedLease(ctx, s.cache, key)
	if err != nil || fl == nil {
		return fence.State{}, false
	}
	leaseKey := types.NamespacedName{Namespace: key.Namespace, Name: fl.LeaseName()}
	leaseKeys, err := leaseKeys(ctx, s.cache, leaseKey, &coordinationv1.Lease{})
	if err != nil {
		return fence.State{}, false
	}
	return stateOf(fl, leaseKeys), true
}

// Live is the state with the Lease read after the call. The FencedLease may come
// from the watch, since its token can only raise current; but where the
// Lease is not cleanly its own, where there is no token at all, or no
// FencedLease, it is read live too.
func (s *States) Live(ctx context.Context, key types.NamespacedName) fence.State {
	state := s.withLease(ctx, key, s.cache)
	switch {
	case state.Unreadable != "":
		return state
	case state.Lease != fence.LeaseOurs || state.Current() == fence.None:
		return s.withLease(ctx, key, s.live)
	}
	savedReads.WithLabelValues(savedByCache).Inc() // of the FencedLease
	return state
}

// withLease is the state with a FencedLease from that reader and its Lease live.
func (s *States) withLease(ctx context.Context, key types.NamespacedName, from client.Reader) fence.State {
	fl, err := fencedLease(ctx, from, key)
	if err != nil {
		return unreadable(err)
	}
	if fl == nil {
		return fence.State{}
	}
	leaseKeys, err := s.leases.get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: fl.LeaseName()})
	if err != nil {
		return unreadable(err)
	}
	return stateOf(fl, leaseKeys)
}

// FencedLease reads a FencedLease live; nil if it does not exist.
func (s *States) FencedLease(ctx context.Context, key types.NamespacedName) (*v1alpha1.FencedLease, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return fencedLease(ctx, s.live, key)
}

// NamespaceTerminating says, from a live read, whether a namespace is going away.
func (s *States) NamespaceTerminating(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(namespaceKind)
	if err := s.live.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		return false, err
	}
	return namespace.DeletionTimestamp != nil, nil
}

// fencedLease is nil if it does not exist. None has an empty name, which a label
// can have, and which a client would not even ask for.
func fencedLease(ctx context.Context, from client.Reader, key types.NamespacedName) (*v1alpha1.FencedLease, error) {
	if key.Name == "" {
		return nil, nil
	}
	fl := &v1alpha1.FencedLease{}
	if err := from.Get(ctx, key, fl); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return fl, nil
}

// leaseKeys are our keys on a Lease; empty if it does not exist.
func leaseKeys(ctx context.Context, from client.Reader, key types.NamespacedName, lease client.Object) (fence.Keys, error) {
	if err := from.Get(ctx, key, lease); err != nil {
		return fence.Keys{}, client.IgnoreNotFound(err)
	}
	return keys.OfLease(lease.GetLabels(), lease.GetAnnotations()), nil
}

func stateOf(fl *v1alpha1.FencedLease, leaseKeys fence.Keys) fence.State {
	kinds := make([]fence.IdentityKind, 0, len(fl.Spec.Identities))
	for _, kind := range fl.Spec.Identities {
		kinds = append(kinds, fence.IdentityKind(kind))
	}
	return fence.State{
		Exists:        true,
		Lease:         fence.LeaseStateOf(leaseKeys, fl.Name),
		LeaseKeys:     leaseKeys,
		StatusToken:   fence.Token(fl.Status.Token),
		Identities:    kinds,
		StrictlyNewer: fl.Spec.TokenOrder == v1alpha1.TokenOrderStrictlyNewer,
		Cached:        fl.Spec.Verification == v1alpha1.VerificationCached,
		Warn:          fl.Spec.Enforcement == v1alpha1.EnforcementWarn,
	}
}

// readErrors bounds the log lines about reads that failed.
var readErrors = rate.NewLimiter(1, 10)

// unreadable is the state after a read that failed. What it says to a client has
// no details; the log has.
func unreadable(err error) fence.State {
	if readErrors.Allow() {
		log.Log.WithName("webhooks").Error(err, "cannot read what a request is judged against")
	}
	why := "the API server did not answer"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = "the API server did not answer in time"
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		why = "the API server answered " + string(apierrors.ReasonForError(err))
	}
	return fence.State{Unreadable: why}
}
