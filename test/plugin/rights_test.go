package plugin

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/suite"
)

func roleBinding() client.Object { return &rbacv1.RoleBinding{} }

func inNamespace(w *suite.World) client.DeleteAllOfOption { return client.InNamespace(w.Namespace) }

// bindRole gives somebody verbs on resources of the test's namespace.
func bindRole(w *suite.World, actor *suite.Actor, verbs, resources []string) {
	w.T.Helper()
	name := at(w, actor).name
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: strings.ReplaceAll(name, ":", "-")},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"", "fencedlease.io"}, Resources: resources, Verbs: verbs}},
	}
	w.Must(w.Admin.Create(w.Ctx, role))
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
}
