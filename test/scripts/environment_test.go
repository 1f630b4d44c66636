package scripts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// state is the manifest of `state`: no token in it.
const state = `apiVersion: v1
kind: ConfigMap
metadata:
  name: state
  labels: {fencedlease.io/guarded-by: payments}
data: {balance: "$BALANCE"}
`

// wantState checks the mark and the balance of `state`.
func wantState(w *suite.World, mark, balance string) {
	w.T.Helper()
	cm := w.GetConfigMap("state")
	if cm.Annotations[v1alpha1.AnnotationToken] != mark || cm.Data["balance"] != balance {
		w.T.Errorf("state has mark %q and balance %q, want %q and %q", cm.Annotations[v1alpha1.AnnotationToken], cm.Data["balance"], mark, balance)
	}
}

// TestPlainKubectl: kubectl knows nothing of tokens, and its writes carry them. With
// the same claim after the term, they are refused.
func TestPlainKubectl(t *testing.T) {
	w, ann := story(t)
	pod, err := suite.Cluster.PodConfig(w.Ctx, w.Namespace, "impersonator", "pod")
	w.Must(err)
	for name, in := range map[string]host{"certificate": ann, "pod": newHost(w, pod)} {
		in.file("state.yaml", strings.ReplaceAll(state, "$BALANCE", name))
		token := strings.TrimSpace(in.sh(`set -e
			exec 5>&1 >log 2>&1
			cp "$KUBECONFIG" kept
			kubectl apply -f state.yaml
			kubectl annotate --overwrite configmap state by="$FENCING_TOKEN"
			kubectl create configmap other -o yaml --dry-run=client >other.yaml
			kubectl apply -f other.yaml
			kubectl label configmap other fencedlease.io/guarded-by=payments
			kubectl delete configmap other
			echo "$FENCING_TOKEN" >&5`).exits(0))
		wantState(w, token, name)
		if by := w.GetConfigMap("state").Annotations["by"]; by != token {
			t.Errorf("annotated by %q", by)
		}
		late := func(args ...string) *process {
			return in.with("KUBECONFIG="+filepath.Join(in.dir, "kept")).start("kubectl", args...)
		}
		// Released is not superseded; then it is.
		late("annotate", "--overwrite", "configmap", "state", "by=me").exits(0)
		ann.run("--", "true").exits(0)
		in.file("state.yaml", strings.ReplaceAll(state, "$BALANCE", "late"))
		late("apply", "-f", "state.yaml").exits(1, "(FencingTokenStale)", "token "+token+" is stale")
		late("delete", "configmap", "state").exits(1, "(FencingTokenStale)")
		wantState(w, token, name)
	}
}

// TestWithoutImpersonation: it is said in two lines, and the plugin takes the token
// from the environment.
func TestWithoutImpersonation(t *testing.T) {
	w, _ := story(t)
	ci := newHost(w, w.User("ci").Config)
	ci.file("state.yaml", strings.ReplaceAll(state, "$BALANCE", "applied"))
	run := ci.sh(`set -e
		! kubectl patch configmap state -p "data: {balance: plain}" 2>refusal
		kubectl fence patch configmap state -p "data: {balance: patched}"
		kubectl fence apply -f state.yaml 2>warnings
		cat refusal; echo "$KUBECONFIG"`)
	out := run.exits(0, "kubectl fence run: KUBECONFIG is left alone and does not carry the token: you may not impersonate users "+w.Namespace+":ci, ",
		"userextras/fencedlease.io/token", "\nkubectl fence run: ", "docs/scripts.md")
	if lines := strings.Count(run.stderr.String(), "\n"); lines != 2 {
		t.Errorf("%d lines on standard error:\n%s", lines, run.stderr.String())
	}
	if !strings.Contains(out, "FencingTokenRequired") || !strings.HasSuffix(out, filepath.Join(ci.dir, "kubeconfig")+"\n") {
		t.Errorf("it printed\n%s", out)
	}
	wantState(w, "1", "applied")
}

// TestRaised: the token rises during a term, and plain kubectl goes on working.
func TestRaised(t *testing.T) {
	w, ann := story(t)
	run := ann.sh(`
		kubectl patch configmap state -p "data: {balance: '1'}" && touch begun
		until kubectl get configmap state -o jsonpath='{.metadata.annotations}' | grep -q '"fencedlease.io/token":"50"'; do
			kubectl annotate --overwrite configmap state at="$(date +%s%N)" >/dev/null 2>&1
		done
		kubectl patch configmap state -p "data: {balance: '2'}" && echo "$FENCING_TOKEN"`)
	run.prints("patched")
	w.ChangeFencedLease("payments", func(fl *v1alpha1.FencedLease) { fl.Spec.MinToken = 50 })
	if out := run.exits(0, "The token of this term was raised, from 1, to 50"); !strings.HasSuffix(out, "\n1\n") {
		t.Errorf("it printed\n%s", out)
	}
	wantState(w, "50", "2")
	released(w)
}

// TestNested: a run within a run of another FencedLease.
func TestNested(t *testing.T) {
	w, ann := story(t)
	w.FencedLease("ledger", func(spec *v1alpha1.FencedLeaseSpec) { spec.MinToken = 30 })
	w.Guarded("book", "ledger", 0)
	out := ann.sh(`set -e
		kubectl fence run ledger --seal configmap/book -- sh -c 'echo $FENCING_TOKEN; kubectl label configmap book a=b'
		echo $FENCING_TOKEN
		kubectl label configmap state a=b`).exits(0)
	if out != "30\nconfigmap/book labeled\n1\nconfigmap/state labeled\n" {
		t.Errorf("it printed\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(ann.dir, "kubeconfig")); err != nil {
		t.Error(err)
	}
}

// TestSeal: before the command starts, or it does not start.
func TestSeal(t *testing.T) {
	w, ann := story(t)
	w.Guarded("more", "payments", 0)
	show := `kubectl get configmap state more free -o jsonpath='{range .items[*]}{.metadata.annotations.fencedlease\.io/token},{end}'`
	if out := ann.sh(show, "--seal=configmap/state").exits(0); out != "1,,," {
		t.Errorf("after a seal of one: %s", out)
	}
	if out := ann.sh(show, "--seal=cm").exits(0); out != "2,2,," {
		t.Errorf("after a seal of all: %s", out)
	}
	if out := ann.sh(show, "--seal=configmaps/nothing", "--seal=ConfigMap/more").exits(0, "There is no such object to seal, resource configmaps, name nothing"); out != "2,3,," {
		t.Errorf("after a seal of nothing: %s", out)
	}
	if out := ann.sh("echo started", "--seal=configmap/free").exits(125, "the command was not started: ", `free: it is not guarded by FencedLease "payments"`); out != "" {
		t.Errorf("it printed %q", out)
	}
	released(w)
}
