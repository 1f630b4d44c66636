package kubectl

import (
	"errors"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestMessages: each refusal as kubectl prints it, with what to do about it.
func TestMessages(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w)
	patch := func(p person, patch string) result {
		t.Helper()
		return p.kubectl("patch", "configmap", "state", "-p", patch)
	}
	write := "data: {balance: '1'}"

	patch(ci, write).refused(fence.ReasonStale,
		`admission webhook "guard.fencedlease.io" denied the request: `,
		`would leave token 1, but the newest is 2, held by "second": if you are a former leader, stop`)
	patch(ci.claims("1"), write).refused(fence.ReasonStale, `token 1 is stale: the newest is 2, held by "second". You are no longer the leader: stop`)
	patch(ci.claims("3"), write).refused(fence.ReasonNeverIssued, "token 3 was never issued", "from your own")
	patch(ci.claims("02"), write).refused(fence.ReasonInvalid, `the user extra fencedlease.io/token is "02"`, "base 10")
	patch(ci.as("fencedlease.io/token=1", "fencedlease.io/token=2"), write).refused(fence.ReasonInvalid, "exactly one value")
	patch(ci, "metadata: {annotations: {fencedlease.io/token: two}}").refused(fence.ReasonInvalid, `the annotation fencedlease.io/token is "two"`)

	patch(ci.claims("2"), write).succeeds()
	patch(ci, write+" ").succeeds("no change") // byte for byte: nothing to refuse
	patch(ci, "data: {balance: '2'}").refused(fence.ReasonRequired,
		`guarded by FencedLease "payments"`, "present yours in the annotation fencedlease.io/token",
		"change the annotation fencedlease.io/write to <token>/<anything>",
		"or in the user extra fencedlease.io/token")
	ci.kubectl("delete", "configmap", "state").refused(fence.ReasonRequired, "present yours in the user extra fencedlease.io/token")
	patch(ci, "metadata: {annotations: {fencedlease.io/token: null}}").refused(fence.ReasonRequired)
}

// TestHolderThatForgets is told its token, and not to stop.
func TestHolderThatForgets(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	ci := script(w)
	ci.kubectl("patch", "lease", "payments", "--type=merge", "-p", "spec: {holderIdentity: ann}").succeeds()
	w.Guarded("state", "payments", 1)
	ci.kubectl("patch", "lease", "payments", "--type=merge", "-p", "spec: {holderIdentity: ann, leaseTransitions: 1}").succeeds()
	ci.kubectl("patch", "configmap", "state", "-p", "data: {balance: '1'}").
		refused(fence.ReasonRequired, "you hold the current token: present 2 in the annotation")
	ci.kubectl("delete", "configmap", "state").refused(fence.ReasonRequired, "you hold the current token: present 2 in the user extra")
}

// TestUnavailable: where the token cannot be read, kubectl tries for a while and
// then says why.
func TestUnavailable(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w)
	role := &rbacv1.ClusterRole{}
	w.Must(w.Admin.Get(w.Ctx, client.ObjectKey{Name: "fencedlease"}, role))
	rules := slices.Clone(role.Rules)
	maySee := func(allowed bool) {
		t.Helper()
		w.Eventually("the operator's right to read Leases is as it should be", func() error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:fencedlease-system:fencedlease",
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: "coordination.k8s.io", Resource: "leases", Verb: "get", Namespace: w.Namespace, Name: "payments",
				},
			}}
			w.Must(w.Admin.Create(w.Ctx, review))
			if review.Status.Allowed != allowed {
				return errors.New("it is not")
			}
			return nil
		})
	}
	maySee(true)
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "leases") })
	w.Must(w.Admin.Update(w.Ctx, role))
	defer func() {
		role.Rules = rules
		w.Must(w.Admin.Update(w.Ctx, role))
		maySee(true)
	}()
	maySee(false)

	ci.claims("2").kubectl("patch", "configmap", "state", "-p", "data: {balance: '1'}").
		refused(fence.ReasonUnavailable, "the current token cannot be read", "nothing is admitted; try again")
	// What is stale for good is refused all the same, at once.
	ci.claims("1").kubectl("patch", "configmap", "state", "-p", "data: {balance: '1'}").refused(fence.ReasonStale)
	wantBalance(w, "0")
}

// TestOperatorAway: guarded objects stay as they are, and everything else works.
func TestOperatorAway(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w)
	w.Must(suite.Manager.Stop(w.Ctx))
	defer func() { w.Must(suite.Manager.Restart(w.Ctx)) }()
	ci.claims("2").kubectl("patch", "configmap", "state", "-p", "data: {balance: '1'}").
		fails(1, "Error from server (InternalError): ", "failed calling webhook")
	ci.kubectl("create", "configmap", "unguarded").succeeds("created")
	wantBalance(w, "0")
}
