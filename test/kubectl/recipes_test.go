package kubectl

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapiv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// recipeTests run the recipes of docs/kubectl.md, as they stand there.
var recipeTests = map[string]func(*suite.World){
	"fence": func(w *suite.World) {
		admin(w).sh(recipe(w.T, "fence")).succeeds(
			"fencedlease.fencedlease.io/payments created", "condition met", "HOLDER", "True")
	},

	"acquire": func(w *suite.World) {
		w.FencedLease("payments")
		ci := script(w)
		say := "\necho \"token $TOKEN\""
		ci.sh(recipe(w.T, "acquire") + say).succeeds("token 1\n")
		ci.sh(recipe(w.T, "acquire") + say).succeeds("token 2\n")
		if lease := w.Lease("payments"); suite.Keys(lease).TokenFor != *lease.Spec.HolderIdentity {
			w.T.Errorf("the token is for %q", suite.Keys(lease).TokenFor)
		}
		// Somebody else is faster, after the Lease was read.
		faster := strings.Replace(recipe(w.T, "acquire"), "NOW=", "kubectl annotate lease payments faster=yes\nNOW=", 1)
		ci.sh(faster).fails(1, "Error from server (Conflict): ")
		// A renewal keeps the token.
		ci.kubectl("patch", "lease", "payments", "--type=merge", "-p", "spec: {renewTime: '2038-01-19T03:14:07.000000Z'}",
			"-o", `jsonpath={.metadata.annotations.fencedlease\.io/token}`).succeeds("2")
	},

	"release": func(w *suite.World) {
		w.FencedLease("payments")
		w.Pod("first").Acquire("payments", "first")
		w.AwaitToken("payments", 1)
		script(w).sh(recipe(w.T, "release")).succeeds("patched")
		if token := suite.Keys(w.Lease("payments")).CurrentToken(); token != 1 {
			w.T.Errorf("token %s after the release, want 1", token)
		}
	},

	"guard": func(w *suite.World) {
		w.FencedLease("payments")
		w.Pod("first").Acquire("payments", "first")
		w.Must(w.Admin.Create(w.Ctx, w.ConfigMap("state")))
		script(w).sh(recipe(w.T, "guard"), "TOKEN=1").succeeds("configmap/state patched")
		wantMark(w, "1")
	},

	"write": func(w *suite.World) {
		ci := secondTerm(w)
		ci.sh(recipe(w.T, "write"), "TOKEN=1").refused(fence.ReasonStale, "token 1 is stale")
		ci.sh(recipe(w.T, "write"), "TOKEN=2").succeeds()
		ci.sh(recipe(w.T, "write"), "TOKEN=2").succeeds()
		wantBalance(w, "100")
	},

	"seal": func(w *suite.World) {
		ci := secondTerm(w)
		ci.sh(recipe(w.T, "seal"), "TOKEN=2").succeeds()
		wantMark(w, "2")
		wantBalance(w, "0")
	},

	"notice": func(w *suite.World) {
		ci := secondTerm(w)
		ci.sh(recipe(w.T, "notice"), "TOKEN=1").fails(75, "somebody else is the leader now")
		ci.sh(recipe(w.T, "notice"), "TOKEN=3").fails(1, "(FencingTokenNeverIssued)")
		ci.sh(recipe(w.T, "notice"), "TOKEN=2").succeeds()
		wantBalance(w, "200")
	},

	"allow-extra": func(w *suite.World) {
		ci := secondTerm(w)
		ci.claims("2").kubectl("annotate", "configmap", "state", "a=b").succeeds()
		// Its own name and this one extra; nothing else.
		ci.as("fencedlease.io/token=2", "other=value").kubectl("annotate", "configmap", "state", "c=d").fails(1, "(Forbidden)")
		ci.with("--as=admin", "--as-user-extra=fencedlease.io/token=2").kubectl("annotate", "configmap", "state", "c=d").fails(1, "(Forbidden)")
	},

	"extra": func(w *suite.World) {
		ci := secondTerm(w)
		ci.file("state.yaml", unclaimed("7"))
		lines := strings.SplitAfter(recipe(w.T, "extra"), "\n\n")
		ci.sh(recipe(w.T, "extra"), "TOKEN=1").fails(1, "(FencingTokenStale)")
		ci.sh(lines[0]+"fenced apply -f state.yaml 2>&1", "TOKEN=2").succeeds("configmap/state configured")
		wantMark(w, "2")
		wantBalance(w, "7")
		ci.sh(recipe(w.T, "extra"), "TOKEN=2").succeeds("state unchanged", "state labeled", `"state" deleted`)
	},

	"kubeconfig": kubeconfigCarriesAClaim,

	"apply": func(w *suite.World) {
		ci := secondTerm(w)
		ci.sh(recipe(w.T, "apply"), "TOKEN=1").refused(fence.ReasonStale)
		ci.sh(recipe(w.T, "apply"), "TOKEN=2").exits(0)
		ci.sh(recipe(w.T, "apply"), "TOKEN=2").succeeds("configured")
		wantMark(w, "2")
		wantBalance(w, "100")
	},

	"apply-server-side": func(w *suite.World) {
		ci := secondTerm(w)
		ci.file("state.yaml", unclaimed("0"))
		fenced, _, _ := strings.Cut(recipe(w.T, "extra"), "\n\n")
		ci.sh(fenced+"\n"+recipe(w.T, "apply-server-side"), "TOKEN=1").refused(fence.ReasonStale)
		ci.sh(fenced+"\n"+recipe(w.T, "apply-server-side"), "TOKEN=2").succeeds("serverside-applied")
		wantMark(w, "2")
	},

	"patch-json": func(w *suite.World) {
		ci := secondTerm(w)
		ci.sh(recipe(w.T, "patch-json"), "TOKEN=1").refused(fence.ReasonStale)
		ci.sh(recipe(w.T, "patch-json"), "TOKEN=2").succeeds()
		wantMark(w, "2")
		wantBalance(w, "100")
	},

	"unguard": func(w *suite.World) {
		ci := secondTerm(w)
		ci.sh(recipe(w.T, "unguard"), "TOKEN=1").refused(fence.ReasonStale)
		ci.sh(recipe(w.T, "unguard"), "TOKEN=2").succeeds()
		ci.kubectl("annotate", "configmap", "state", "anyone=may").succeeds()
	},

	"move": func(w *suite.World) {
		ci := secondTerm(w)
		w.FencedLease("ledger", func(s *v1alpha1.FencedLeaseSpec) { s.MinToken = 30 })
		w.Pod("clerk").Acquire("ledger", "clerk")
		fenced, _, _ := strings.Cut(recipe(w.T, "extra"), "\n\n")
		ci.sh(fenced+"\n"+recipe(w.T, "move"), "TOKEN=2", "LEDGER_TOKEN=30").succeeds("unlabeled", "patched")
		wantMark(w, "30")
		ci.claims("30").kubectl("label", "configmap", "state", "a=b").succeeds()
	},

	"bypass": func(w *suite.World) {
		secondTerm(w)
		admin(w).sh(recipe(w.T, "bypass")).warns("admitted by break-glass", "FencingTokenStale")
		wantMark(w, "1")
		wantBalance(w, "0")
		// The same reason again is the stored one, and counts for nothing.
		again := strings.Replace(recipe(w.T, "bypass"), "balance: '0'", "balance: '5'", 1)
		admin(w).sh(again).refused(fence.ReasonStale)
		admin(w).sh(strings.Replace(again, "ticket 42", "ticket 42, once more", 1)).warns("admitted by break-glass")
		wantBalance(w, "5")
	},

	"bypass-delete": func(w *suite.World) {
		secondTerm(w)
		admin(w).sh(recipe(w.T, "bypass-delete")).warns("admitted by break-glass", "FencingTokenRequired")
		admin(w).kubectl("get", "configmap", "state").fails(1, "(NotFound)")
	},

	"bypass-audit": func(w *suite.World) {
		secondTerm(w)
		admin(w).sh(recipe(w.T, "bypass")).warns()
		w.Eventually("the Event is there", func() error {
			// Ann may not: kubectl auth can-i says so with its exit code, too.
			return has(admin(w).sh(recipe(w.T, "bypass-audit")), "FenceBypassed", "configmap/state",
				"user admin broke the glass of FencedLease payments: ticket 42", "no\n")
		})
		admin(w).kubectl("auth", "can-i", "bypass", "fencedleases.fencedlease.io/payments").warns("'bypass' is not a known verb")
	},

	"warn": func(w *suite.World) {
		ci := secondTerm(w)
		admin(w).sh(recipe(w.T, "warn")).succeeds("patched")
		admin(w).kubectl("get", "fl", "payments", "-o", "wide").succeeds("Warn")
		// Settings take effect with the lag of a watch.
		w.Eventually("the write is admitted", func() error {
			return has(ci.kubectl("patch", "configmap", "state", "-p", "data: {balance: '8'}"), "patched")
		})
		ci.kubectl("patch", "configmap", "state", "-p", "data: {balance: '9'}").
			warns("admitted only because enforcement is Warn", "FencingTokenStale")
		ci.kubectl("delete", "configmap", "state").warns("FencingTokenRequired")
		w.Eventually("the Event is there", func() error {
			return has(admin(w).kubectl("get", "events", "--field-selector=reason=FenceWarned"), "configmap/state", "FencedLease payments is Warn")
		})
	},
}

// TestRecipes runs every recipe of docs/kubectl.md.
func TestRecipes(t *testing.T) {
	for name := range pageRecipes(t) {
		if test := recipeTests[name]; test != nil {
			t.Run(name, func(t *testing.T) { test(suite.New(t)) })
		}
	}
}

// kubeconfigCarriesAClaim: with as-user-extra in its kubeconfig, kubectl and any
// other client carries a claim, whatever it does.
func kubeconfigCarriesAClaim(w *suite.World) {
	ci := script(w)
	w.FencedLease("payments", func(s *v1alpha1.FencedLeaseSpec) { s.MinToken = 7 })
	w.Pod("first").Acquire("payments", "first")
	w.Guarded("state", "payments", 7)

	var snippet clientcmdapiv1.Config
	w.Must(yaml.Unmarshal([]byte(recipe(w.T, "kubeconfig")), &snippet))
	user := snippet.AuthInfos[0].AuthInfo
	config, err := clientcmd.LoadFromFile(ci.kubeconfig)
	w.Must(err)
	for _, own := range config.AuthInfos {
		own.Impersonate, own.ImpersonateUserExtra = w.Namespace+":"+user.Impersonate, user.ImpersonateUserExtra
	}
	w.Must(clientcmd.WriteToFile(*config, ci.kubeconfig))

	ci.kubectl("annotate", "configmap", "state", "a=b").succeeds("annotated")
	w.Pod("second").Acquire("payments", "second")
	ci.kubectl("annotate", "configmap", "state", "c=d").refused(fence.ReasonStale, "token 7 is stale: the newest is 8")
}
