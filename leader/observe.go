package leader

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// observedGetter gives client-go's lock a client whose answers our lock keeps:
// what client-go makes of them, an election record, leaves the token out.
type observedGetter struct {
	coordinationclient.LeasesGetter

	lock *lock
}

// Leases is the client for the Leases of a namespace.
func (g observedGetter) Leases(namespace string) coordinationclient.LeaseInterface {
	return observedLeases{g.LeasesGetter.Leases(namespace), g.lock}
}

type observedLeases struct {
	coordinationclient.LeaseInterface

	lock *lock
}

func (l observedLeases) Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.keep(l.LeaseInterface.Get(ctx, name, opts))
}

func (l observedLeases) Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.keep(l.LeaseInterface.Create(ctx, lease, opts))
}

func (l observedLeases) Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.keep(l.LeaseInterface.Update(ctx, lease, opts))
}

// keep keeps a copy of an answer: client-go's lock writes on its own.
func (l observedLeases) keep(lease *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err == nil {
		l.lock.answer = lease.DeepCopy()
	}
	return lease, err
}
