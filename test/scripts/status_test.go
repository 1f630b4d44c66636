package scripts

import (
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/test/suite"
)

// TestStatus: the command's own, in an environment that is complete.
func TestStatus(t *testing.T) {
	w, ann := story(t)
	if out := ann.sh(`echo "$FENCING_TOKEN $FENCED_LEASE $1"; ls -l "$KUBECONFIG" "$(dirname "$KUBECONFIG")"; stat -c %a "$(dirname "$KUBECONFIG")"`).exits(0); !strings.HasPrefix(out, "1 "+w.Namespace+"/payments \n-rw------- ") || !strings.HasSuffix(out, "\n700\n") {
		t.Errorf("it printed\n%s", out)
	}
	released(w)
	// The next term has the next token.
	if out := ann.sh("echo $FENCING_TOKEN; exit 3").exits(3); out != "2\n" {
		t.Errorf("the second token is %s", out)
	}
	ann.sh("kill -KILL $$").exits(137)
	ann.sh("kill -USR1 $$").exits(138)
	ann.run("--", "no-such-command").exits(127, "kubectl fence run: ", `"no-such-command": executable file not found`)
	ann.run("--", "./missing").exits(127, "no such file or directory")
	w.Must(os.WriteFile(ann.dir+"/text", []byte("text"), 0o600))
	ann.run("--", "./text").exits(126, "permission denied")
	ann.file("garbage", "\x00\x01\x02")
	ann.run("--", "./garbage").exits(126, "exec format error")
	released(w)
	// What was open is open, and standard input is the command's.
	if out := ann.start("sh", "-c", `echo question | kubectl fence run payments -- sh -c 'cat; cat <&3; cat <&7' 3<three 7<seven`).exits(2, "three: No such file"); out != "" {
		t.Errorf("it printed %q", out)
	}
	ann.file("three", "3")
	ann.file("seven", "7")
	if out := ann.start("sh", "-c", `echo question | kubectl fence run payments -- sh -c 'cat; cat <&3; cat <&7' 3<three 7<seven`).exits(0); out != "question\n37" {
		t.Errorf("it printed %q", out)
	}
}

// TestMistakes: they are told before anything is taken.
func TestMistakes(t *testing.T) {
	w, ann := story(t)
	for _, tc := range []struct {
		says string
		args []string
	}{
		{"name a FencedLease, then --, then the command", []string{"true"}},
		{"name a FencedLease, then --, then the command", []string{"--"}},
		{"unknown flag: --nothing", []string{"--nothing", "--", "true"}},
		{"--wait takes a time", []string{"--wait=0", "--", "true"}},
		{"--wait takes a time", []string{"--wait=1s", "--no-wait", "--", "true"}},
		{"LeaseDuration must be a whole number of seconds", []string{"--lease-duration=1500ms", "--", "true"}},
		{"RenewDeadline (20s) must be less than LeaseDuration (6s)", []string{"--renew-deadline=20s", "--", "true"}},
		{`--seal is "configmap/"`, []string{"--seal=configmap/", "--", "true"}},
		{`the server doesn't have a resource type`, []string{"--seal=nothings", "--", "true"}},
		{"it belongs to no namespace", []string{"--seal=namespace/default", "--", "true"}},
		{"connection refused", []string{"--server=https://127.0.0.1:1", "--", "true"}},
	} {
		ann.run(tc.args...).exits(125, "kubectl fence run: ", tc.says)
	}
	ann.start("kubectl", "fence", "run", "nothing", "--", "true").exits(125, `FencedLease "nothing" does not exist`)
	if token := w.Lease("payments").Annotations["fencedlease.io/token"]; token != "" {
		t.Errorf("the Lease was taken, with token %s", token)
	}
	ann.start("kubectl", "fence", "run-keeper").exits(1, "is for `kubectl fence run` itself")
}

// TestNotAcquired: somebody else has the Lease.
func TestNotAcquired(t *testing.T) {
	w, ann := story(t)
	first := newHost(w, w.Admin.Config).sh("echo first; exec sleep 100", "--identity=first")
	first.prints("first\n")
	ann.run("--no-wait", "--", "echo", "second").exits(75, `kubectl fence run: the Lease `+w.Namespace+`/payments was not acquired: "first" holds it`)
	start := time.Now()
	out := ann.run("--wait=2s", "--", "echo", "second").exits(75, `waiting for Lease `+w.Namespace+`/payments: "first" has held it for `, "with token 1", "it was not free within 2s")
	if took := time.Since(start); out != "" || took < 2*time.Second || took > 20*time.Second {
		t.Errorf("after %s it printed %q", took, out)
	}
	if stderr := ann.run("--wait=1s", "--quiet", "--", "true"); stderr.exits(75, "it was not free within 1s") != "" || strings.Contains(stderr.stderr.String(), "waiting") {
		t.Errorf("it is not quiet: %s", stderr.stderr.String())
	}
	// A signal ends the wait.
	waiting := ann.run("--", "echo", "second")
	waiting.says("waiting for Lease")
	waiting.signal(15)
	waiting.exits(143, "waiting")
	first.signal(15)
	first.exits(143)
	// Without a wait for those who have gone without a word.
	then := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	_, err := w.Admin.WriteLease("payments", func(lease *coordinationv1.Lease) {
		gone, duration := "gone", int32(3)
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &gone, RenewTime: &then, AcquireTime: &then, LeaseDurationSeconds: &duration}
	})
	w.Must(err)
	if out := ann.run("--no-wait", "--", "echo", "second").exits(0, `"gone" has held it for 60m, with token 2, and renewed it 60m ago`); out != "second\n" {
		t.Errorf("it printed %q", out)
	}
}

// TestTakenAway: an administrator gives the Lease to somebody else.
func TestTakenAway(t *testing.T) {
	w, ann := story(t)
	run := ann.sh("echo started; trap '' TERM; sleep 100 & wait; sleep 100")
	run.prints("started")
	w.Admin.Acquire("payments", "thief")
	run.exits(76, "kubectl fence run: the command was killed: the term with token 1", `a newer token was handed out; current is 2, and the holder "thief"`)
	if holder := holder(w); holder != "thief" {
		t.Errorf("the Lease is with %q", holder)
	}
	_, err := w.Admin.WriteLease("payments", func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = nil })
	w.Must(err)
	run = ann.sh("echo started; sleep 100")
	run.prints("started")
	w.Admin.Release("payments")
	run.exits(76, "somebody released the Lease")
}

// TestNoRight: whoever may not take the Lease does not wait for it.
func TestNoRight(t *testing.T) {
	w, ann := story(t)
	config, err := suite.Cluster.PodConfig(w.Ctx, w.Namespace, "reader", "reader-1")
	w.Must(err)
	w.Must(w.Admin.Delete(w.Ctx, workers(w)))
	ann.block(`
		kubectl create role reader --verb=get --resource=fencedleases.fencedlease.io,leases.coordination.k8s.io
		kubectl create rolebinding reader --role=reader --serviceaccount="$NAMESPACE:reader"`, "NAMESPACE="+w.Namespace).exits(0)
	reader := newHost(w, config)
	w.Eventually("it may read", func() error {
		return failing(reader.start("kubectl", "auth", "can-i", "get", "fencedleases.fencedlease.io/payments", "-q"), 0)
	})
	reader.run("--quiet", "--", "true").exits(125, "was not acquired: ", `cannot update resource "leases"`)
	if holder := holder(w); holder != "" {
		t.Errorf("the Lease is with %q", holder)
	}
}
