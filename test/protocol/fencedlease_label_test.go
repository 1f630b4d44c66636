package protocol

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// Somebody else's webhook takes our label off as it is put on: no webhook of ours
// sees the Lease any more, so the FencedLease must not say that it is Ready.
func TestFencedLeaseLabelTakenOff(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.MutatingWebhook("meddlers", admissionregistrationv1.IfNeededReinvocationPolicy, func(r *admissionv1.AdmissionRequest) []suite.JSONPatch {
		if !strings.Contains(string(r.Object.Raw), v1alpha1.LabelFencedBy+`":"payments"`) {
			return nil
		}
		return []suite.JSONPatch{{Op: "remove", Path: atFencedBy}}
	})
	w.Must(w.Admin.Create(w.Ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: "payments", Labels: map[string]string{"team": "meddlers"},
	}}))

	w.Must(w.Admin.Create(w.Ctx, &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "payments"}}))
	w.AwaitCondition("payments", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMintNotInForce)
	if c := meta.FindStatusCondition(w.GetFencedLease("payments").Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(c.Message, "took the label") {
		t.Errorf("the message is %q", c.Message)
	}
	if keys := suite.Keys(w.Lease("payments")); keys != (fence.Keys{}) {
		t.Errorf("keys %+v on a Lease that is not fenced", keys)
	}
}
