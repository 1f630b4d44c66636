package outage

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// patchCommand is a command of docs/runbooks/webhook-down.md: kind, name and type, and
// the patch.
var patchCommand = regexp.MustCompile(`kubectl patch (\w+) (fencedlease) (--type=json) -p '([^']*)'`)

// TestOpenDoor runs the commands of docs/runbooks/webhook-down.md while the webhooks
// are away: each opens what it says, and closes it again.
func TestOpenDoor(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", "webhook-down.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := patchCommand.FindAllStringSubmatch(string(page), -1)
	if len(commands) != 8 {
		t.Fatalf("the page has %d patches, want 4 that open and 4 that close", len(commands))
	}

	w := suite.New(t)
	run := func(numbers ...int) {
		t.Helper()
		for _, n := range numbers {
			command := commands[n]
			patch := strings.ReplaceAll(command[4], `"prod"`, `"`+w.Namespace+`"`)
			out, err := suite.Cluster.Kubectl(w.Ctx, "patch", command[1], command[2], command[3], "-p", patch)
			w.Must(err)
			if out.ExitCode != 0 {
				t.Fatalf("%s\n%s", command[0], out.Stderr)
			}
		}
	}
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	w.Guarded("account-99", "payments", 1)
	balance := 0
	write := func() error {
		balance++ // never what is there already, which anybody may write
		return pod.Modify("account-99", suite.Balance(strconv.Itoa(balance)))
	}
	acquire := func() error { return second(pod.TryAcquire("payments", "next")) }

	w.Must(suite.Manager.Stop(w.Ctx))
	over := false
	t.Cleanup(func() {
		if !over {
			w.Must(suite.Manager.Restart(w.Ctx))
		}
		install(w)
	})
	for _, door := range []struct {
		name        string
		open, close []int
		try         func() error
	}{
		{"guarded objects of one namespace", []int{0}, []int{4}, write},
		{"guarded objects everywhere", []int{1}, []int{5}, write},
		{"acquisitions", []int{2, 3}, []int{6, 7}, acquire},
	} {
		closed := func() error {
			if err := door.try(); !apierrors.IsInternalError(err) {
				return errors.Join(errors.New("want an internal error: the webhook is away"), err)
			}
			return nil
		}
		w.Must(closed())
		run(door.open...)
		w.Eventually(door.name+": open", door.try)
		run(door.close...)
		w.Eventually(door.name+": closed", func() error {
			if door.name == "acquisitions" {
				pod.Release("payments") // or it is a renewal
			}
			return closed()
		})
	}

	w.Must(suite.Manager.Restart(w.Ctx))
	over = true
	if token := pod.Acquire("payments", "another"); token != 2 {
		t.Errorf("token %s, want 2: nobody had one while the door was open", token)
	}
	suite.Refused(t, write(), 428, fence.ReasonRequired)
}
