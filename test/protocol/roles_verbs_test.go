package protocol

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestRolesVerbs: what the roles view, edit and admin of the cluster say about
// FencedLeases: each verb works for whoever has one of these roles, and no other does.
func TestRolesVerbs(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	for _, role := range []string{"view", "edit", "admin"} {
		somebody := withRole(w, role)
		t.Run(role+" may", func(t *testing.T) {
			for _, v := range verbs(w) {
				if !slices.Contains(v.roles, role) {
					continue
				}
				t.Run(v.name, func(t *testing.T) {
					t.Parallel()
					here := *w
					here.T = t
					// Roles are aggregated a little later.
					here.Eventually(role+" may "+v.name, func() error { return v.try(somebody) })
				})
			}
		})
		t.Run(role+" may not", func(t *testing.T) {
			for _, v := range verbs(w) {
				if slices.Contains(v.roles, role) {
					continue
				}
				t.Run(v.name, func(t *testing.T) {
					if err := v.try(somebody); !apierrors.IsForbidden(err) {
						t.Errorf("%s may %s: %v", role, v.name, err)
					}
				})
			}
		})
	}
}

// withRole is somebody who has a role of the cluster in the test's namespace.
func withRole(w *suite.World, role string) client.WithWatch {
	w.T.Helper()
	name := w.Namespace + ":" + role
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	config, err := suite.Cluster.UserConfig(name)
	w.Must(err)
	somebody, err := client.NewWithWatch(config, client.Options{Scheme: w.Admin.Scheme()})
	w.Must(err)
	return somebody
}

// verb is a request, and which roles may make it.
type verb struct {
	name  string
	roles []string
	try   func(client.WithWatch) error
}

// verbs are all of them. Nothing is really written.
func verbs(w *suite.World) []verb {
	w.T.Helper()
	payments := func() *v1alpha1.FencedLease {
		return &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "payments"}}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minToken":7},"status":{"token":7}}`))
	here := client.InNamespace(w.Namespace)
	readers, writers, nobody := []string{"view", "edit", "admin"}, []string{"edit", "admin"}, []string(nil)
	return []verb{
		{"get", readers, func(c client.WithWatch) error {
			return c.Get(w.Ctx, w.Key("payments"), payments())
		}},
		{"list", readers, func(c client.WithWatch) error {
			return c.List(w.Ctx, &v1alpha1.FencedLeaseList{}, here)
		}},
		{"watch", readers, func(c client.WithWatch) error {
			watching, err := c.Watch(w.Ctx, &v1alpha1.FencedLeaseList{}, here)
			if err == nil {
				watching.Stop()
			}
			return err
		}},
		{"get status", readers, func(c client.WithWatch) error {
			return c.SubResource("status").Get(w.Ctx, payments(), payments())
		}},
		{"create", writers, func(c client.WithWatch) error {
			orders := payments()
			orders.Name = "orders"
			return c.Create(w.Ctx, orders, client.DryRunAll)
		}},
		{"update", writers, func(c client.WithWatch) error {
			return c.Update(w.Ctx, w.GetFencedLease("payments"), client.DryRunAll)
		}},
		{"patch", writers, func(c client.WithWatch) error {
			return c.Patch(w.Ctx, payments(), patch, client.DryRunAll)
		}},
		{"delete", writers, func(c client.WithWatch) error {
			return c.Delete(w.Ctx, payments(), client.DryRunAll)
		}},
		{"deletecollection", writers, func(c client.WithWatch) error {
			return c.DeleteAllOf(w.Ctx, payments(), here, client.DryRunAll)
		}},
		// The operator's alone.
		{"update status", nobody, func(c client.WithWatch) error {
			return c.Status().Update(w.Ctx, w.GetFencedLease("payments"), client.DryRunAll)
		}},
		{"patch status", nobody, func(c client.WithWatch) error {
			return c.Status().Patch(w.Ctx, payments(), patch, client.DryRunAll)
		}},
	}
}
