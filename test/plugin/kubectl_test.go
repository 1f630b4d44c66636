package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// manifest is that of `state`: no token in it.
func manifest(balance string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: state\n  labels: {fencedlease.io/guarded-by: payments}\ndata: {balance: '" + balance + "'}\n"
}

// TestApply: the same manifest is admitted with the current token, and refused with
// an older one and with none.
func TestApply(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	for name, flags := range map[string][]string{
		"client-side": {},
		"server-side": {"--server-side", "--force-conflicts"},
	} {
		t.Run(name, func(t *testing.T) {
			file := ann.file("state.yaml", manifest(name))
			apply := func(more ...string) result {
				t.Helper()
				return ann.fence(append(append([]string{"apply", "-f", file}, flags...), more...)...)
			}
			apply("--token=1").refused(fence.ReasonStale, "token 1 is stale", "You are not the leader, or no longer: stop.")
			apply("--token=3").refused(fence.ReasonNeverIssued)
			apply().fails("error: a fencing token is needed")
			apply("--token=2", "--dry-run=server", "-o", "name").warns().has("", "")
			apply("--token=2").warns()
			want(w, "state", "payments", "2", name)
		})
	}
	// Several objects, one of which is guarded by another FencedLease.
	w.FencedLease("ledger")
	w.Pod("clerk").Acquire("ledger", "clerk")
	several := ann.file("several.yaml", manifest("several")+"---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\n  labels: {fencedlease.io/guarded-by: ledger}\n"+
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: free}\n")
	ann.fence("apply", "-f", several, "--token=2").refused(fence.ReasonNeverIssued, `of FencedLease "ledger" is 1`).has("", "")
	want(w, "state", "payments", "2", "several")
	if _, ok := w.GetConfigMap("free").Labels[v1alpha1.LabelGuardedBy]; ok {
		t.Error("an object that is not guarded is now")
	}
}

// TestPatch: of every type, and of /status.
func TestPatch(t *testing.T) {
	w, ann := secondTerm(t)
	widgets(w)
	createWidget(w, "front", suite.GuardedBy("payments"), suite.Token("2"))
	patch := func(token string, args ...string) result {
		t.Helper()
		return ann.fence(append([]string{"patch", "--token", token}, args...)...)
	}
	for name, args := range map[string][]string{
		"strategic": {"configmap", "state", "-p", "data: {balance: strategic}"},
		"merge":     {"configmap", "state", "--type=merge", "-p", "data: {balance: merge}"},
		"json":      {"configmap", "state", "--type=json", "-p", `[{"op": "replace", "path": "/data/balance", "value": "json"}]`},
	} {
		patch("1", args...).refused(fence.ReasonStale, "token 1 is stale")
		patch("2", args...).prints("configmap/state patched")
		want(w, "state", "payments", "2", name)
		patch("2", args...).prints("configmap/state patched (no change)")
	}
	status := []string{"widget", "front", "--subresource=status", "--type=merge", "-p", "status: {ready: true}"}
	patch("1", status...).refused(fence.ReasonStale)
	patch("2", status...).prints("widget.example.com/front patched")

	// kubectl's own words and exit status where it is no refusal of ours.
	patch("2", "configmap", "nothing", "-p", "data: {}").fails(`Error from server (NotFound): configmaps "nothing" not found`)
	patch("2", "configmap", "state").fails("error: must specify --patch or --patch-file")
}

// TestDelete: its token goes beside the request, which needs a right.
func TestDelete(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	w.Guarded("more", "payments", 2)
	user := w.User("ci")
	ci := at(w, user)
	ci.fence("delete", "configmap", "state", "--token=2").fails("Error from server (Forbidden): ", "cannot impersonate", "`kubectl fence check` says what is missing")
	ann.fence("delete", "configmap", "state", "more", "--token=1").refused(fence.ReasonStale, "token 1 is stale")
	ann.fence("delete", "configmap", "state", "--token=2", "--dry-run=server").prints("deleted from", "(server dry run)")
	want(w, "state", "payments", "1", "0")
	ann.fence("delete", "configmap", "state", "--token=2").prints(`configmap "state" deleted`)
	if err := w.Admin.Get(w.Ctx, w.Key("state"), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap is still there: %v", err)
	}
	if mark := w.GetConfigMap("more").Annotations[v1alpha1.AnnotationToken]; mark != "2" {
		t.Errorf("the other one has mark %q, want 2", mark)
	}
}
