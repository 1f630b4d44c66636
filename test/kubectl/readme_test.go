package kubectl

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestReadme runs the commands of the README, as they stand there.
func TestReadme(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- TestReadme -->\n```sh\n(.*?)```\n").FindSubmatch(text)
	if block == nil {
		t.Fatal("the README has no commands for this test")
	}

	w := suite.New(t)
	me := script(w)
	me.sh(string(block[1])).succeeds("condition met", "configmap/account-99 patched")
	cm := w.GetConfigMap("account-99")
	if cm.Data["balance"] != "50000" || cm.Annotations["fencedlease.io/token"] != "1" {
		t.Errorf("balance %q, token %q, want 50000 and 1", cm.Data["balance"], cm.Annotations["fencedlease.io/token"])
	}
	suite.Refused(t, w.User("somebody").Modify("account-99", suite.Balance("1")), 428, fence.ReasonRequired, "is guarded by FencedLease", "present yours in")
}
