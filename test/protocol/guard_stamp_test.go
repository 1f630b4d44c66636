package protocol

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestStampStoresTheClaim: with the claim in headers alone, any write stores it
// as the mark, whatever the object in it says.
func TestStampStoresTheClaim(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "update", "patch", "lowered", "raised", "removed", "garbled")
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("label")))
	two := s.presents("2")

	for name, err := range map[string]error{
		"create":  two.Create(s.Ctx, s.ConfigMap("create", suite.GuardedBy("payments"))),
		"update":  two.Modify("update", suite.Balance("1")),
		"patch":   merge(s.World, two, "patch", `{"data":{"balance":"1"}}`),
		"label":   two.Modify("label", suite.GuardedBy("payments")),
		"lowered": two.Modify("lowered", suite.Token("1"), suite.Balance("1")),
		"raised":  two.Modify("raised", suite.Token("3")),
		"removed": two.Modify("removed", withoutToken),
		"garbled": two.Modify("garbled", suite.Token("none")),
	} {
		t.Run(name, func(t *testing.T) {
			suite.Admitted(t, err)
			wantMark(s.World, name, "2")
		})
	}
}

// TestStampSecret: the same for a Secret.
func TestStampSecret(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: "key", Labels: map[string]string{v1alpha1.LabelGuardedBy: "payments"},
	}}
	suite.Refused(t, s.presents("1").Create(s.Ctx, secret.DeepCopy()), 412, fence.ReasonStale)
	suite.Admitted(t, s.presents("2").Create(s.Ctx, secret))
	if got := secret.Annotations[v1alpha1.AnnotationToken]; got != "2" {
		t.Errorf("the answer has token %q, want 2", got)
	}
}

// TestStampLeavesTheRestAlone: an object that is not guarded, or no longer, and
// one whose writer claims nothing, is stored as it was sent.
func TestStampLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	two := s.presents("2")
	suite.Admitted(t, two.Create(s.Ctx, s.ConfigMap("free")))
	wantMark(s.World, "free", "")
	suite.Admitted(t, two.Modify("free", suite.Token("whatever")))
	wantMark(s.World, "free", "whatever")
	suite.Admitted(t, two.Modify("account", suite.Unguarded, suite.Token("1")))
	wantMark(s.World, "account", "1")
}

// TestStampIsNoVerdict: what it stores is judged like any claim.
func TestStampIsNoVerdict(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	suite.Refused(t, s.presents("1").Modify("account", suite.Token("2"), suite.Balance("1")), 412, fence.ReasonStale, "token 1 is stale")
	suite.Refused(t, s.presents("3").Modify("account", suite.Token("2")), 403, fence.ReasonNeverIssued, "token 3")
	suite.Refused(t, s.presents("two").Modify("account", suite.Token("2")), 422, fence.ReasonInvalid, `"two"`)
	// A stale claim that changes nothing in the end is admitted, and so proves nothing.
	suite.Admitted(t, s.presents("1").Modify("account", suite.Token("2")))
	s.untouched("account", "1")
	suite.Admitted(t, s.second.Modify("account", suite.Token("2")))
}
