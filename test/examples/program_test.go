package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/cluster/process"
	"github.com/fencedlease/fencedlease/test/suite"
)

// grace is how long a program may take to end after SIGTERM.
const grace = 20 * time.Second

// program is an example that runs.
type program struct {
	*process.Process

	w   *suite.World
	log string
}

// start starts an example as a process of a Pod of its own, whose kubeconfig is in
// its environment.
func start(w *suite.World, name, path string, args ...string) *program {
	w.T.Helper()
	pod := w.Pod(name)
	id := w.Namespace + "-" + name
	kubeconfig := filepath.Join(suite.Cluster.Dir, id+".kubeconfig")
	w.Must(suite.Cluster.Kubeconfig(kubeconfig, pod.Config))
	w.T.Setenv("KUBECONFIG", kubeconfig)
	p := &program{w: w, log: filepath.Join(suite.Cluster.Dir, id+".log")}
	var err error
	p.Process, err = process.Start(suite.Cluster.Dir, id, path, p.log, args...)
	w.Must(err)
	w.T.Cleanup(func() { _ = p.Kill() }) // what matters was checked by then
	return p
}

// says waits until the program has written one of these.
func (p *program) says(parts ...string) {
	p.w.T.Helper()
	p.w.Eventually("the program says "+strings.Join(parts, ", or "), func() error {
		data, err := os.ReadFile(p.log)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if strings.Contains(string(data), part) {
				return nil
			}
		}
		return fmt.Errorf("it says:\n%s", data)
	})
}

// fails waits until the program has ended by itself, with a status other than 0.
func (p *program) fails() {
	p.w.T.Helper()
	select {
	case <-p.Done():
	case <-time.After(suite.Patience):
		p.w.T.Fatalf("the program still runs:\n%s", process.Tail(p.log, 10))
	}
	if p.Stop(grace) == nil {
		p.w.T.Errorf("the program ended with status 0:\n%s", process.Tail(p.log, 10))
	}
}

// build builds a program of this module.
func build(t *testing.T, path string) string {
	t.Helper()
	binary := filepath.Join(suite.Cluster.Dir, filepath.Base(path))
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	command := exec.CommandContext(t.Context(), "go", "build", "-o", binary, filepath.Join(root(t), path))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, output)
	}
	return binary
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// scene is where each story begins: a FencedLease and a guarded ConfigMap that
// nobody has written yet.
func scene(t *testing.T) *suite.World {
	t.Helper()
	w := suite.New(t)
	w.FencedLease("payments")
	w.Guarded("account-99", "payments", 0)
	return w
}

// stored waits until the account has a value, with a mark.
func stored(w *suite.World, key, value, mark string) {
	w.T.Helper()
	w.Eventually(fmt.Sprintf("%s is %q with mark %s", key, value, mark), func() error {
		account := w.GetConfigMap("account-99")
		if account.Data[key] != value || account.Annotations[v1alpha1.AnnotationToken] != mark {
			return fmt.Errorf("data %v, annotations %v", account.Data, account.Annotations)
		}
		return nil
	})
}

// want asks the manager of the example for a balance, with the current token in the
// user extra: the account is guarded for those who ask, too.
func want(w *suite.World, value, token string) {
	w.T.Helper()
	account := w.GetConfigMap("account-99")
	before := account.DeepCopy()
	account.Data["wanted"] = value
	w.Must(w.Admin.WithClaim(token).Patch(w.Ctx, account, client.MergeFrom(before)))
}

// takeOver makes somebody else the holder of the Lease.
func takeOver(w *suite.World) {
	w.T.Helper()
	w.Pod("successor").Acquire("payments", "successor")
}

// holder is who holds the Lease.
func holder(w *suite.World) string {
	if h := w.Lease("payments").Spec.HolderIdentity; h != nil {
		return *h
	}
	return ""
}
