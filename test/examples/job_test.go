package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// terminal is where somebody runs kubectl with the plugin.
type terminal struct {
	w   *suite.World
	env []string
}

func newTerminal(w *suite.World) terminal {
	w.T.Helper()
	kubectl, err := cluster.Asset("kubectl")
	w.Must(err)
	home := w.T.TempDir()
	return terminal{w, append(os.Environ(),
		"KUBECONFIG="+w.Kubeconfig(w.Admin.Config), "KUBECACHEDIR="+filepath.Join(home, "cache"), "KUBERC=off", "HOME="+home,
		"PATH="+w.Plugins()+":"+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))}
}

// sh runs a shell script.
func (t terminal) sh(script string) {
	t.w.T.Helper()
	command := exec.CommandContext(t.w.Ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Env = t.env
	if output, err := command.CombinedOutput(); err != nil {
		t.w.T.Fatalf("%s: %v\n%s", script, err, output)
	}
}

// Two runs of the job, one after the other: each in a term of its own, and plain
// kubectl in it writes the guarded object.
func TestJob(t *testing.T) {
	w := scene(t)
	at := newTerminal(w)
	job := filepath.Join(root(t), "examples", "job", "job.sh")
	at.sh("kubectl fence run payments --seal configmap/account-99 -- " + job + " 50000")
	stored(w, "balance", "50000", "1")
	at.sh("kubectl fence run payments --seal configmap/account-99 -- " + job + " 60000")
	stored(w, "balance", "60000", "2")
	if h := holder(w); h != "" {
		t.Errorf("after the job the Lease is held by %q", h)
	}
}

// The command of docs/controllers.md.
func TestPageCommands(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	w.Must(w.Admin.Create(w.Ctx, w.ConfigMap("account-99")))
	at := newTerminal(w)
	for _, script := range blocks(t, "sh") {
		at.sh(script)
	}
	stored(w, "balance", "0", "")
	if by := w.GetConfigMap("account-99").Labels["fencedlease.io/guarded-by"]; by != "payments" {
		t.Errorf("it is guarded by %q", by)
	}
}
