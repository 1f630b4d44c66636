package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	ownTimeout = 10 * time.Second // for one try
	ownAgain   = 10 * time.Second // between two
)

// ElectionLease has the Lease of the manager's own leader election end with the
// installation: its owner is the manager's service account. No release of Helm has
// that Lease, since the election makes it.
type ElectionLease struct {
	Client   client.Client
	Key      types.NamespacedName
	Operator authenticationv1.UserInfo // the manager, as the API server sees it
}

var _ manager.LeaderElectionRunnable = ElectionLease{}

// NeedLeaderElection is true: before, there may be no Lease.
func (e ElectionLease) NeedLeaderElection() bool { return true }

// Start returns when the Lease has its owner, or cannot have one, or ctx ends. It does
// nothing where the manager is no service account of that namespace, on somebody's desk
// for instance.
func (e ElectionLease) Start(ctx context.Context) error {
	name, ours := strings.CutPrefix(e.Operator.Username, "system:serviceaccount:"+e.Key.Namespace+":")
	if !ours || e.Operator.UID == "" { // as whoever impersonates one
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ServiceAccount","name":%q,"uid":%q}]}}`, name, e.Operator.UID)
	_ = wait.PollUntilContextCancel(ctx, ownAgain, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, ownTimeout)
		defer cancel()
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.Key.Namespace, Name: e.Key.Name}}
		err := e.Client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch))
		if err == nil {
			return true, nil
		}
		log.FromContext(ctx).Error(err, "the election Lease has no owner: an uninstallation would leave it behind")
		// Where OwnerReferencesPermissionEnforcement is on, it takes the right to delete
		// Leases, which is too much to ask for.
		return apierrors.IsForbidden(err) || apierrors.IsInvalid(err), nil
	})
	return nil // the end of ctx is no failure
}
