package protocol

import (
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// A policy keeps the operator from making the Lease: the condition says what is
// in the way, and the FencedLease gets Ready once it is not.
func TestFencedLeaseRefusedByPolicy(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{"coordination.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"leases"},
					},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no Leases here"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	w.Must(w.Admin.Create(w.Ctx, policy))
	w.Must(w.Admin.Create(w.Ctx, binding))
	w.Eventually("the policy is in force", func() error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: "probe-"}}
		if err := w.Admin.Create(w.Ctx, lease); err == nil {
			return errors.New("a Lease was created")
		}
		return nil
	})

	w.Must(w.Admin.Create(w.Ctx, &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "payments"}}))
	w.AwaitCondition("payments", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotWritable)
	if message := readyMessage(w, "payments"); !containsText(message, "no Leases here") {
		t.Errorf("the message is %q", message)
	}
	w.Must(w.Admin.Delete(w.Ctx, binding))
	w.Must(w.Admin.Delete(w.Ctx, policy))
	w.AwaitCondition("payments", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
}
