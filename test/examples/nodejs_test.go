package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fencedlease/fencedlease/test/suite"
)

// install puts the example in JavaScript, with its packages, where a process may
// be started from, and returns the program and the one that runs it.
func install(t *testing.T) (node, script string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("the example in JavaScript needs Node.js 18 or newer, and npm: %v", err)
	}
	dir := filepath.Join(suite.Cluster.Dir, "nodejs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"leader.mjs", "package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join(root(t), "examples", "nodejs", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, output)
	}
	return node, filepath.Join(dir, "leader.mjs")
}

// A leader in JavaScript, which takes its Lease itself, with the official client.
func TestNodejs(t *testing.T) {
	node, script := install(t)
	t.Run("it ends when another takes over", func(t *testing.T) {
		w := scene(t)
		p := start(w, "first", node, script, w.Namespace, "payments", "account-99")
		p.says("leads with token 1")
		p.says("wrote 3")
		stored(w, "count", "3", "1")
		takeOver(w)
		p.fails()
		// It learns from its next write or its next renewal, whichever comes first.
		p.says("ends: HTTP 412 FencingTokenStale", "ends: the Lease is held by successor")
	})
	t.Run("it releases the Lease", func(t *testing.T) {
		w := scene(t)
		p := start(w, "first", node, script, w.Namespace, "payments", "account-99")
		p.says("wrote 1")
		w.Must(p.Stop(grace))
		p.says("released")
		if h := holder(w); h != "" {
			t.Errorf("the Lease is still held by %q", h)
		}
		if got := w.GetFencedLease("payments").Status.Token; got != 1 {
			t.Errorf("the token is %d after a release, want 1", got)
		}
	})
}
