package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestGuardBeforeTheFirstTerm: there is no token to present yet, and a forged one is
// refused.
func TestGuardBeforeTheFirstTerm(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	create(w, "state", "other")
	ann := at(w, w.Admin)
	ann.fence("guard", "configmap/state", "--lease=payments", "--token=1").
		refused(fence.ReasonNeverIssued, "token 1 was never issued", "Take the token from the answer to your own write")
	want(w, "state", "", "", "0")
	ann.fence("guard", "configmap/state", "other", "--lease=payments").fails("there is no need to specify a resource type as a separate argument")
	ann.fence("guard", "configmap/state", "configmap/other", "--lease=payments").
		warns("Warning: no token of FencedLease \"payments\" was minted yet").has("", "")
	want(w, "state", "payments", "", "0")
	want(w, "other", "payments", "", "0")
}

// TestGuard: with a term, its token goes on with the label, whatever an earlier
// guard left behind.
func TestGuard(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	create(w, "new")
	w.Must(w.Admin.Modify("new", suite.Annotation(v1alpha1.AnnotationToken, "7"), suite.Annotation(v1alpha1.AnnotationWrite, "7/x")))

	ann.fence("guard", "configmap/new", "--lease=payments").
		refused(fence.ReasonRequired, "present yours", "`kubectl fence apply|patch|delete --token`")
	ann.fence("guard", "configmap/new", "--lease=payments", "--token=1").
		refused(fence.ReasonStale, `token 1 is stale: the newest is 2, held by "second"`, "stop")
	ann.fence("guard", "configmap/new", "--lease=payments", "--token=3").refused(fence.ReasonNeverIssued)
	ann.fence("guard", "configmap/new", "--lease=payments", "--token=2", "--dry-run=server").prints("configmap/new guarded (server dry run)\n")
	want(w, "new", "", "7", "0")
	ann.with("FENCING_TOKEN=2").fence("guard", "configmap", "new", "--lease=payments").prints("configmap/new guarded\n")
	want(w, "new", "payments", "2", "0")

	ann.fence("guard", "configmap/new", "--lease=payments").prints("configmap/new is under FencedLease payments already\n")
	ann.fence("guard", "configmap/new", "--lease=payments", "-o", "name").prints("configmap/new\n")
	ann.fence("guard", "configmap/new", "--lease=payments", "-o", "json").prints(`"fencedlease.io/guarded-by": "payments"`)
}

// TestGuardRefuses what makes no sense, before anything is written.
func TestGuardRefuses(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	w.FencedLease("ledger")
	create(w, "new")
	ann.fence("guard", "configmap/new", "--lease=nothing").fails(`error: FencedLease "nothing" does not exist in namespace`)
	ann.fence("guard", "configmap/state", "--lease=ledger").
		fails("error: configmap/state is under FencedLease payments: take it out first", "`kubectl fence unguard configmap/state")
	ann.fence("guard", "configmap/missing", "configmap/new", "--lease=payments", "--token=2").
		fails(`Error from server (NotFound): configmaps "missing" not found`).has("", "")
	want(w, "new", "payments", "2", "0") // the others are guarded all the same

	w.Must(w.Admin.Create(w.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "robot"}}))
	ann.fence("guard", "serviceaccount/robot", "--lease=payments", "--token=2").
		fails("error: serviceaccount/robot is out of the guard's reach, so the label would have no effect", "ConfigMaps, Secrets and custom resources")
	ann.fence("guard", "namespace/"+w.Namespace, "--lease=payments", "--token=2").fails("belongs to no namespace")
	robot := &corev1.ServiceAccount{}
	w.Must(w.Admin.Get(w.Ctx, w.Key("robot"), robot))
	if len(robot.Labels) > 0 {
		t.Errorf("the labels of the ServiceAccount are %v", robot.Labels)
	}
}

// TestUnguard: the last write under the FencedLease.
func TestUnguard(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	ann.fence("unguard", "configmap/state").refused(fence.ReasonStale, "would leave token 1")
	ann.fence("unguard", "configmap/state", "--token=1").refused(fence.ReasonStale, "token 1 is stale")
	ann.fence("unguard", "configmap/state", "--token=2", "--dry-run=server").prints("configmap/state unguarded (server dry run)\n")
	want(w, "state", "payments", "1", "0")
	w.Must(w.Admin.Modify("state", suite.Token("2")))
	ann.fence("unguard", "configmap/state").refused(fence.ReasonRequired, "present yours")
	// The object carries the token already: it is presented afresh.
	ann.fence("unguard", "configmap/state", "--token=2").prints("configmap/state unguarded\n")
	want(w, "state", "", "2", "0")
	ann.fence("unguard", "configmap/state").prints("configmap/state is not guarded\n")

	// From one FencedLease to another: with a token of each.
	w.FencedLease("ledger")
	w.Pod("clerk").Acquire("ledger", "clerk")
	ann.fence("guard", "configmap/state", "--lease=ledger", "--token=1").prints("guarded")
	want(w, "state", "ledger", "1", "0")
}

// TestUnguardOrphans: once the FencedLease is gone, no token is needed, and our
// annotations go as well.
func TestUnguardOrphans(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	w.Must(w.Admin.Delete(w.Ctx, w.GetFencedLease("payments")))
	ann.fence("patch", "configmap", "state", "--token=2", "-p", "data: {balance: '1'}").
		refused(fence.ReasonNotFound, `FencedLease "payments" does not exist`, "`kubectl fence unguard`")
	ann.fence("unguard", "configmap/state").warns(`Warning: FencedLease "payments" does not exist: the write was not checked`)
	want(w, "state", "", "", "0")
}
