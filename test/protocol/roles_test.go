package protocol

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestRolesEdit: who may edit a namespace may make FencedLeases in it, but not
// write their status, and not break the glass.
func TestRolesEdit(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	config, err := suite.Cluster.UserConfig(w.Namespace + ":editor")
	w.Must(err)
	editor := w.Actor("editor", config)
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "editor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.Namespace + ":editor"}},
	}))

	fl := &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "payments"}}
	w.Eventually("the role edit is aggregated", func() error { return editor.Create(w.Ctx, fl) })
	w.AwaitCondition("payments", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)

	fl = w.GetFencedLease("payments")
	fl.Status.Token = 9
	if err := editor.Status().Update(w.Ctx, fl); !apierrors.IsForbidden(err) {
		t.Errorf("the status was written by an editor: %v", err)
	}

	w.Guarded("account-99", "payments", fence.None)
	w.Pod("holder").Acquire("payments", "holder")
	bypass := suite.Annotation(v1alpha1.AnnotationBypass, "I am in a hurry")
	suite.Refused(t, editor.Modify("account-99", suite.Balance("1"), bypass), 428, fence.ReasonRequired, "needs the verb bypass")
	suite.Admitted(t, w.Admin.Modify("account-99", suite.Balance("1"), bypass))
}
