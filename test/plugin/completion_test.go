package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fencedlease/fencedlease/test/suite"
)

// TestCompletion: kubectl's own completion completes the plugin: verbs, flags,
// FencedLeases and objects.
func TestCompletion(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("ledger")
	w.FencedLease("payments")
	create(w, "state")
	ann := at(w, w.Admin)
	completes := func(args ...string) result {
		t.Helper()
		return ann.kubectl("", append([]string{"__complete", "fence"}, args...)...).warns("ShellCompDirectiveNoFileComp")
	}
	r := completes("s")
	r.has(r.Stdout, "status", "seal").lacks("guard")
	r = completes("status", "")
	r.has(r.Stdout, "ledger\npayments\n")
	r = completes("release", "p")
	r.has(r.Stdout, "payments\n").lacks("ledger")
	r = completes("guard", "configmap/st")
	r.has(r.Stdout, "configmap/state")
	r = completes("guard", "configmap/state", "--lease", "l")
	r.has(r.Stdout, "ledger\n").lacks("payments")
	r = completes("seal", "payments", "configmap/st")
	r.has(r.Stdout, "configmap/state")
	r = completes("explain", "FencingTokenS")
	r.has(r.Stdout, "FencingTokenStale\n").lacks("Required")

	plugins := w.Plugins()
	script, err := os.ReadFile(filepath.Join(plugins, "kubectl_complete-fence"))
	w.Must(err)
	if printed := ann.fence("completion").prints().Stdout; printed != string(script) {
		t.Errorf("`kubectl fence completion` prints\n%s", printed)
	}
}
