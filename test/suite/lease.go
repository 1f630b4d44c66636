package suite

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/keys"
)

// FencedLease creates a FencedLease and waits until it is Ready.
func (w *World) FencedLease(name string, change ...func(*v1alpha1.FencedLeaseSpec)) *v1alpha1.FencedLease {
	w.T.Helper()
	fl := &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	for _, c := range change {
		c(&fl.Spec)
	}
	w.Must(w.Admin.Create(w.Ctx, fl))
	w.AwaitCondition(name, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
	return w.GetFencedLease(name)
}

// GetFencedLease reads a FencedLease.
func (w *World) GetFencedLease(name string) *v1alpha1.FencedLease {
	w.T.Helper()
	fl := &v1alpha1.FencedLease{}
	w.Must(w.Admin.Get(w.Ctx, w.Key(name), fl))
	return fl
}

// ChangeFencedLease changes a FencedLease as the administrator, whatever the
// controller writes to its status meanwhile.
func (w *World) ChangeFencedLease(name string, change func(*v1alpha1.FencedLease)) {
	w.T.Helper()
	fl := w.GetFencedLease(name)
	before := fl.DeepCopy()
	change(fl)
	w.Must(w.Admin.Patch(w.Ctx, fl, client.MergeFrom(before)))
}

// AwaitCondition waits until a condition of a FencedLease is so, at its generation.
func (w *World) AwaitCondition(name, condition string, status metav1.ConditionStatus, reason string) {
	w.T.Helper()
	w.Eventually(fmt.Sprintf("%s of FencedLease %s is %s (%s)", condition, name, status, reason), func() error {
		fl := w.GetFencedLease(name)
		c := meta.FindStatusCondition(fl.Status.Conditions, condition)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != fl.Generation {
			return fmt.Errorf("it is %+v at generation %d", c, fl.Generation)
		}
		return nil
	})
}

// AwaitToken waits until status.token of a FencedLease is so.
func (w *World) AwaitToken(name string, token fence.Token) {
	w.T.Helper()
	w.Eventually(fmt.Sprintf("status.token of FencedLease %s is %s", name, token), func() error {
		if got := w.GetFencedLease(name).Status.Token; got != int64(token) {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
}

// Lease reads a Lease.
func (w *World) Lease(name string) *coordinationv1.Lease {
	w.T.Helper()
	lease := &coordinationv1.Lease{}
	w.Must(w.Admin.Get(w.Ctx, w.Key(name), lease))
	return lease
}

// Keys are our keys on a Lease.
func Keys(lease *coordinationv1.Lease) fence.Keys {
	return keys.OfLease(lease.Labels, lease.Annotations)
}

// TryAcquire takes a Lease the way that candidates do: by an update of what was
// read, whoever holds it.
func (a *Actor) TryAcquire(name, holder string) (*coordinationv1.Lease, error) {
	return a.WriteLease(name, func(lease *coordinationv1.Lease) { Take(lease, holder) })
}

// Acquire takes a Lease and returns the token from the response.
func (a *Actor) Acquire(name, holder string) fence.Token {
	a.world.T.Helper()
	lease, err := a.TryAcquire(name, holder)
	a.world.Must(err)
	return Keys(lease).CurrentToken()
}

// Renew renews a Lease, by an update of what was read.
func (a *Actor) Renew(name string) (*coordinationv1.Lease, error) {
	return a.WriteLease(name, func(lease *coordinationv1.Lease) {
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
	})
}

// WriteLease reads a Lease, changes it, and puts it back; again, if the operator
// came in between.
func (a *Actor) WriteLease(name string, change ...func(*coordinationv1.Lease)) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		*lease = coordinationv1.Lease{}
		if err := a.Get(a.world.Ctx, a.world.Key(name), lease); err != nil {
			return err
		}
		for _, c := range change {
			c(lease)
		}
		return a.Update(a.world.Ctx, lease)
	})
}

// Release gives a Lease up, as client-go does.
func (a *Actor) Release(name string) {
	a.world.T.Helper()
	_, err := a.WriteLease(name, func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = new(string) })
	a.world.Must(err)
}

// Take makes holder the holder of a Lease that is then written, in a new term.
func Take(lease *coordinationv1.Lease, holder string) {
	now := metav1.NewMicroTime(time.Now())
	transitions := int32(1)
	if lease.Spec.LeaseTransitions != nil {
		transitions = *lease.Spec.LeaseTransitions + 1
	}
	duration := int32(15)
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &duration,
		AcquireTime: &now, RenewTime: &now, LeaseTransitions: &transitions,
	}
}
