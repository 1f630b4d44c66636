package plugin

import (
	"testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestSeal: the token goes on, and nothing else changes.
func TestSeal(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	ann.fence("seal", "payments", "configmap/state", "--token=1").refused(fence.ReasonStale, "token 1 is stale")
	ann.fence("seal", "payments", "configmap/state", "--token=3").refused(fence.ReasonNeverIssued)
	ann.fence("seal", "payments", "configmap/state", "--token=2", "--dry-run=server").prints("configmap/state sealed with token 2 (server dry run)\n")
	want(w, "state", "payments", "1", "0")
	ann.fence("seal", "payments", "configmap/state", "--token=2").prints("configmap/state sealed with token 2\n")
	want(w, "state", "payments", "2", "0")

	before := w.GetConfigMap("state").ResourceVersion
	ann.fence("seal", "payments", "configmap/state", "--token=2").prints("configmap/state has token 2 already\n")
	if after := w.GetConfigMap("state").ResourceVersion; after != before {
		t.Error("an object that had the token was written again")
	}
	// Its mark is the token, which is stale by now: no comfort.
	w.Pod("third").Acquire("payments", "third")
	ann.fence("seal", "payments", "configmap/state", "--token=2").refused(fence.ReasonStale, "the newest is 3")

	create(w, "free")
	w.FencedLease("ledger")
	ann.fence("seal", "payments", "configmap/free", "--token=3").fails("error: configmap/free is not under FencedLease payments, but under no FencedLease")
	ann.fence("seal", "ledger", "configmap/state", "--token=3").fails("error: configmap/state is not under FencedLease ledger, but under FencedLease payments")
	ann.fence("seal", "nothing", "configmap/state", "--token=3").fails(`FencedLease "nothing" does not exist`)
}

// TestSealMany: by label, and all, of every kind.
func TestSealMany(t *testing.T) {
	w, ann := secondTerm(t)
	widgets(w)
	createWidget(w, "front", suite.GuardedBy("payments"), suite.Token("2"))
	w.Guarded("more", "payments", 2)
	create(w, "free")
	w.Pod("third").Acquire("payments", "third")

	ann.kubectl("", "label", "configmap", "free", "app=payments").prints()
	ann.fence("patch", "configmap", "more", "--token=3", "-p", "metadata: {labels: {app: payments}}").prints("configmap/more patched")
	ann.fence("seal", "payments", "configmaps,widgets.example.com", "-l", "app=payments", "--token=3").
		prints("configmap/more has token 3 already\n").lacks("free", "state", "front")
	ann.fence("seal", "payments", "configmaps", "-l", "app=nothing", "--token=3").warns("No objects under FencedLease payments found")
	ann.fence("seal", "payments", "--all", "--token=2").refused(fence.ReasonStale, "configmap/state: ", "configmap/more: ", "widget.example.com/front: ")
	ann.with("FENCING_TOKEN=3").fence("seal", "payments", "--all", "-o", "name").prints("configmap/more\n", "configmap/state\n", "widget.example.com/front\n")
	want(w, "state", "payments", "3", "0")
	want(w, "free", "", "", "0")
	if mark := getWidget(w, "front").GetAnnotations()[v1alpha1.AnnotationToken]; mark != "3" {
		t.Errorf("the widget has mark %q, want 3", mark)
	}
	ann.fence("status", "payments").prints("configmap/more 3 sealed", "configmap/state 3 sealed", "widget.example.com/front 3 sealed")

	// Who may not see everything has not sealed everything.
	some := w.ServiceAccount("some")
	w.Must(w.Admin.DeleteAllOf(w.Ctx, roleBinding(), inNamespace(w)))
	bindRole(w, some, []string{"get", "list", "patch"}, []string{"configmaps", "fencedleases"})
	at(w, some).fence("seal", "payments", "--all", "--token=3").fails("Error from server (Forbidden): ", "secrets is forbidden", "widgets.example.com is forbidden")
}

// TestSealWarn: where stale writes are admitted, a seal is no comfort.
func TestSealWarn(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	w.ChangeFencedLease("payments", func(fl *v1alpha1.FencedLease) { fl.Spec.Enforcement = v1alpha1.EnforcementWarn })
	ann.fence("seal", "payments", "configmap/state", "--token=2").warns("Warning: enforcement of FencedLease payments is Warn")
	want(w, "state", "payments", "2", "0")
}

// TestSealStrictlyNewer: the seal would be the only write of the term.
func TestSealStrictlyNewer(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments", func(spec *v1alpha1.FencedLeaseSpec) { spec.TokenOrder = v1alpha1.TokenOrderStrictlyNewer })
	w.Pod("first").Acquire("payments", "first")
	w.Guarded("state", "payments", 1)
	w.Pod("second").Acquire("payments", "second")
	at(w, w.Admin).fence("seal", "payments", "configmap/state", "--token=2").fails("error: ", "tokenOrder StrictlyNewer", "write what you have to write instead")
	want(w, "state", "payments", "1", "0")
}
