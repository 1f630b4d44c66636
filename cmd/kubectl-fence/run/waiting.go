package run

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/fencedlease/fencedlease/internal/keys"
)

// progressInterval is how often somebody who waits is told what for.
const progressInterval = 30 * time.Second

// waiting looks at the Lease as long as somebody else has it. It decides nothing
// but when to give up: the election has eyes of its own.
type waiting struct {
	leases    coordination.LeaseInterface
	name      string
	namespace string
	identity  string
	log       *log
}

func newWaiting(config *rest.Config, namespace, name, identity string, log *log) (*waiting, error) {
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &waiting{leases: client.Leases(namespace), namespace: namespace, name: name, identity: identity, log: log}, nil
}

// look reads the Lease; an empty one if there is none yet.
func (w *waiting) look(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := w.leases.Get(ctx, w.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{}, nil
	}
	return lease, err
}

// tell tells who has the Lease, if it is somebody else.
func (w *waiting) tell(lease *coordinationv1.Lease) {
	holder := w.other(lease)
	if holder == "" {
		return
	}
	w.log.say("waiting for Lease %s/%s: %q has held it%s, with token %s, and renewed it%s", w.namespace, w.name, holder,
		since(" for ", lease.Spec.AcquireTime, ""), keys.OfLease(lease.Labels, lease.Annotations).CurrentToken(),
		since(" ", lease.Spec.RenewTime, " ago"))
}

// since is the time since then, for people; "" if it is not known.
func since(before string, then *metav1.MicroTime, after string) string {
	if then == nil {
		return ""
	}
	return before + duration.HumanDuration(time.Since(then.Time)) + after
}

// other is the holder, if it is somebody else.
func (w *waiting) other(lease *coordinationv1.Lease) string {
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == w.identity {
		return ""
	}
	return holder
}

// progress tells every now and then, until the context ends.
func (w *waiting) progress(ctx context.Context) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// That the API server is away the election tells.
			if lease, err := w.look(ctx); err == nil && ctx.Err() == nil {
				w.tell(lease)
			}
		}
	}
}

// heldBy is who has the Lease and by the clocks still renews it; "" if nobody does.
// Clocks may be wrong: then somebody waits who need not, or the other way round.
func (w *waiting) heldBy(lease *coordinationv1.Lease) string {
	holder := w.other(lease)
	if holder == "" || lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) > durationOf(lease) {
		return ""
	}
	return holder
}

// untilHeld returns who has the Lease, as soon as somebody else turns out to: a
// holder from before who still renews it, or one who is faster. A Lease that its
// holder left behind can be taken once it has not been renewed for as long as it
// lasts, by our own clock; that is waited for, and no longer.
func (w *waiting) untilHeld(ctx context.Context, before *coordinationv1.Lease, interval, patience time.Duration) string {
	end := time.Now().Add(durationOf(before) + patience)
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(interval):
		}
		lease, err := w.look(ctx)
		if err == nil && w.other(lease) != "" && !sameRenewal(lease, before) {
			return fmt.Sprintf("%q holds it", w.other(lease))
		}
		if time.Now().After(end) {
			return "it could not be taken"
		}
	}
}

// durationOf is how long a Lease lasts without a renewal.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	return time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
}

// sameRenewal says whether nobody has acquired or renewed the Lease in between.
func sameRenewal(a, b *coordinationv1.Lease) bool {
	return ptr.Equal(a.Spec.HolderIdentity, b.Spec.HolderIdentity) && a.Spec.RenewTime.Equal(b.Spec.RenewTime)
}
