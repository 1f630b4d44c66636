package kubectl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestSamples is the first tour: both samples as they are, two holders, and a
// late write.
func TestSamples(t *testing.T) {
	w := suite.New(t)
	root, err := cluster.Root()
	w.Must(err)
	p := admin(w).with("--namespace=default") // as the samples say
	samples := func(name string) string { return filepath.Join(root, "config", "samples", name) }
	t.Cleanup(func() {
		for _, object := range []string{"fencedlease/payments", "configmap/payments-state", "lease/payments"} {
			p.kubectl("delete", "--ignore-not-found", object).exits(0)
		}
	})

	p.kubectl("apply", "-f", samples("fencedlease.yaml")).succeeds("fencedlease.fencedlease.io/payments created")
	p.kubectl("wait", "--for=condition=Ready", "fencedlease/payments").succeeds("condition met")
	p.kubectl("apply", "-f", samples("configmap.yaml")).warns("no token of FencedLease \"payments\" was minted yet")

	take := func(who string) result {
		return p.kubectl("patch", "lease", "payments", "--type=merge", "-p", "spec: {holderIdentity: "+who+"}",
			"-o", `jsonpath={.metadata.annotations.fencedlease\.io/token}`)
	}
	take("ann").succeeds("1")
	p.kubectl("annotate", "configmap", "payments-state", "fencedlease.io/token=1").succeeds()
	take("bob").succeeds("2")
	p.kubectl("annotate", "configmap", "payments-state", "fencedlease.io/write=1/late").
		refused(fence.ReasonStale, "token 1 is stale: the newest is 2, held by \"bob\"")

	// The sample says where the token goes.
	text, err := os.ReadFile(samples("configmap.yaml"))
	w.Must(err)
	with := strings.NewReplacer("# annotations:", "annotations:", `#   fencedlease.io/token: "1"`, `  fencedlease.io/token: "2"`).Replace(string(text))
	p.kubectlInput(with, "apply", "-f", "-").succeeds("configured")
}

// TestColumns: what kubectl get prints.
func TestColumns(t *testing.T) {
	w := suite.New(t)
	p := admin(w)
	w.FencedLease("payments", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseName = "payments-lock" })
	row := func(args ...string) (header, values []string) {
		t.Helper()
		r := p.kubectl(append([]string{"get"}, args...)...)
		r.succeeds()
		lines := strings.Split(r.Stdout, "\n")
		return strings.Fields(lines[0]), strings.Fields(lines[1])
	}
	narrow := []string{"NAME", "HOLDER", "TOKEN", "READY", "AGE"}

	if _, values := row("fl"); values[0] != "payments" || values[1] != "True" {
		t.Errorf("before the first term: %q", values)
	}
	w.Pod("ann").Acquire("payments-lock", "ann")
	w.AwaitToken("payments", 1)
	for _, name := range []string{"fl", "fencedlease", "fencedleases", "fencedleases.fencedlease.io"} {
		header, values := row(name)
		if !slices.Equal(header, narrow) || !slices.Equal(values[:4], []string{"payments", "ann", "1", "True"}) {
			t.Errorf("kubectl get %s: %q %q", name, header, values)
		}
	}
	header, values := row("fl", "-o", "wide")
	wide := []string{"NAME", "HOLDER", "TOKEN", "READY", "LEASE", "ACQUIRED", "ENFORCEMENT", "MESSAGE", "AGE"}
	if !slices.Equal(header, wide) || values[4] != "payments-lock" || values[6] != "Deny" ||
		!strings.Contains(strings.Join(values, " "), "acquisitions of Lease payments-lock are fenced") {
		t.Errorf("wide: %q %q", header, values)
	}
	p.kubectl("explain", "fencedlease.spec.tokenOrder").succeeds("StrictlyNewer")
}

// TestStatusTokenNeverFalls: not for a cluster administrator, with or without an
// editor. The API server itself refuses it.
func TestStatusTokenNeverFalls(t *testing.T) {
	const why = "tokens never fall"
	w := suite.New(t)
	w.FencedLease("payments")
	w.Pod("first").Acquire("payments", "first")
	w.Pod("second").Acquire("payments", "second")
	w.AwaitToken("payments", 2)
	p := admin(w)

	for _, status := range []string{"status: {token: 1}", "status: {token: null}", "status: null"} {
		p.kubectl("patch", "fencedlease", "payments", "--subresource=status", "--type=merge", "-p", status).
			fails(1, `The FencedLease "payments" is invalid`, why)
	}
	for name, sed := range map[string]string{"lowered": "s/^  token: 2$/  token: 1/", "removed": "/^  token: 2$/d"} {
		t.Run(name, func(t *testing.T) {
			p := admin(inside(w, t)).edits(sed)
			p.kubectl("edit", "fencedlease", "payments", "--subresource=status").
				fails(1, `fencedleases.fencedlease.io "payments" is invalid`, "no valid changes were saved")
			// kubectl opens the editor again, with the reason at the top.
			if shown := strings.Join(p.shown(), "\n"); !strings.Contains(shown, why) {
				t.Errorf("the editor was not told why:\n%s", shown)
			}
		})
	}
	if token := w.GetFencedLease("payments").Status.Token; token != 2 {
		t.Errorf("status.token %d, want 2", token)
	}
}

// TestLeaseStaysWithItsFencedLease: rule M7, as kubectl delete shows it.
func TestLeaseStaysWithItsFencedLease(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	p := admin(w)
	p.kubectl("delete", "lease", "payments").refused(fence.ReasonFencedLeaseExists, "delete the FencedLease first")
	p.kubectl("delete", "fencedlease", "payments").succeeds("deleted")
	w.Eventually("the Lease is retired", func() error {
		return has(p.kubectl("get", "lease", "payments", "--show-labels"), "fencedlease.io/retired=true")
	})
	p.kubectl("delete", "lease", "payments").succeeds("deleted")
}

// TestApplyALease: a holder may write its Lease with kubectl apply, too. The first
// must force: the holder before it, or the operator that made the Lease, owns the
// field.
func TestApplyALease(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	p := script(w)
	lease := func(holder string) string {
		return "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: payments}\nspec: {holderIdentity: " + holder + "}\n"
	}
	token := []string{"-f", "-", "-o", `jsonpath={.metadata.annotations.fencedlease\.io/token}`}
	p.kubectlInput(lease("ann"), append([]string{"apply", "--server-side", "--force-conflicts"}, token...)...).succeeds("1")
	p.kubectlInput(lease("ann"), append([]string{"apply", "--server-side"}, token...)...).succeeds("1")
	p.kubectlInput(lease("bob"), append([]string{"apply", "--server-side"}, token...)...).succeeds("2")
	// Client-side apply and replace rebuild the Lease; the counter stays.
	r := p.kubectlInput(lease("cat"), append([]string{"apply"}, token...)...)
	r.exits(0)
	r.says(r.Stdout, "3")
	p.kubectlInput(lease("dan"), "replace", "-f", "-").succeeds("replaced")
	if got := suite.Keys(w.Lease("payments")).CurrentToken(); got != 4 {
		t.Errorf("token %s, want 4", got)
	}
}
