package plugin

import (
	"errors"
	"testing"

	"github.com/fencedlease/fencedlease/test/suite"
)

// errNotYet says that what is waited for is not so.
var errNotYet = errors.New("not yet")

// TestMistakes: what is wrong with a command is said in a line, before anything is
// written.
func TestMistakes(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	ann := at(w, w.Admin)
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no such verb":      {[]string{"seel"}, `unknown command "seel"`},
		"no such flag":      {[]string{"status", "--nope"}, "unknown flag: --nope: see `kubectl fence status --help`"},
		"no token":          {[]string{"seal", "payments", "configmap/state"}, "a fencing token is needed: give the one that you got when you acquired the Lease"},
		"no token, apply":   {[]string{"apply", "-f", "-"}, "a fencing token is needed"},
		"malformed token":   {[]string{"patch", "configmap", "state", "-p", "{}", "--token", "07"}, `--token is "07": a fencing token is an integer`},
		"empty token":       {[]string{"delete", "configmap", "state", "--token="}, `--token is "": a fencing token is an integer`},
		"nothing to seal":   {[]string{"seal", "payments", "--token=1"}, "name the objects to seal"},
		"all and one":       {[]string{"seal", "payments", "--all", "configmap/state", "--token=1"}, "say --all alone"},
		"no FencedLease":    {[]string{"guard", "configmap/state"}, "name the FencedLease in --lease"},
		"dry run here":      {[]string{"guard", "configmap/state", "--lease=payments", "--dry-run=client"}, "use --dry-run=server"},
		"release nothing":   {[]string{"release"}, "accepts 1 arg(s), received 0: see `kubectl fence release --help`"},
		"explain nothing":   {[]string{"explain", "something else"}, "this is no refusal by a FencedLease"},
		"a deadline passed": {[]string{"status", "--request-timeout=1ns"}, "deadline exceeded"},
		"no server":         {[]string{"status", "--server=https://127.0.0.1:1"}, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := *w
			in.T = t
			ann := ann
			ann.w = &in
			ann.fence(tc.args...).fails("error: ", tc.says)
		})
	}
	ann.with("FENCING_TOKEN=x").fence("delete", "configmap", "state").fails(`$FENCING_TOKEN is "x"`)
}
