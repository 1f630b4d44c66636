package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/cluster/process"
)

// insideVariable tells a test process that it is in namespaces of its own.
const insideVariable = "FENCEDLEASE_E2E_INSIDE"

// The images of the node, by name: what is to be installed, its next version, and two
// of the examples.
const (
	image     = "fencedlease:v0.1.0" // as the chart has it by default
	nextImage = "fencedlease:" + nextVersion

	elector       = "elector:latest"
	accountsImage = "accounts:latest"
)

var (
	plane *cluster.Cluster
	root  string // of the repository
)

func TestMain(m *testing.M) {
	within := run
	if os.Getenv(insideVariable) == "" {
		within = func(*testing.M) (int, error) { return inside() }
	}
	code, err := within(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// inside runs this test program again in a network and a mount namespace of its own,
// and returns its exit status.
func inside() (int, error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("run this as root: the node makes network interfaces, mounts and users of its own")
	}
	runtime.LockOSThread() // the child dies with the thread that made it
	command := exec.Command(os.Args[0], os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), insideVariable+"=yes")
	// Unshareflags, unlike Cloneflags, keep the mounts from those outside.
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := command.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func run(m *testing.M) (code int, err error) {
	log.SetLogger(logr.Discard()) // what matters is in errors, and in the logs of Pods
	if root, err = cluster.Root(); err != nil {
		return 1, err
	}
	for _, args := range [][]string{
		{"link", "set", "dev", "lo", "up"},
		{"address", "add", cluster.ServiceAddress + "/32", "dev", "lo"},
	} {
		if output, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return 1, fmt.Errorf("ip %v: %w: %s", args, err, output)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	plane, err = cluster.Start(ctx, cluster.Options{Workloads: true, APIServerArgs: []string{
		// There is no kube-proxy: the API server goes to the Pods behind a Service by itself.
		"--enable-aggregator-routing=true",
	}})
	if err != nil {
		return 1, fmt.Errorf("the control plane did not start: %w", err)
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	node, err := startNode(ctx)
	if err != nil {
		return 1, fmt.Errorf("the node did not start: %w", err)
	}
	defer func() { err = errors.Join(err, node.Stop(time.Minute)) }()
	return m.Run(), nil
}

// startNode starts the node with all images.
func startNode(ctx context.Context) (*process.Process, error) {
	ours := filepath.Join(plane.Dir, "image")
	if err := layOut(filepath.Join(root, "Dockerfile"), ours); err != nil {
		return nil, err
	}
	args := []string{"--kubeconfig=" + plane.KubeconfigPath, "--dir=" + podsDir(), "--image=" + image + "=" + ours, "--image=" + nextImage + "=" + ours}
	for name, example := range map[string]string{elector: "elector", accountsImage: "manager"} {
		dir := filepath.Join(plane.Dir, "example-"+example)
		if err := layOutExample(ctx, example, dir); err != nil {
			return nil, err
		}
		args = append(args, "--image="+name+"="+dir)
	}
	program := filepath.Join(root, "bin", "test-node")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("%w; `make e2e` builds it", err)
	}
	return process.Start(plane.Dir, "test-node", program, filepath.Join(plane.Dir, "test-node.log"), args...)
}

// podsDir has what the Pods have written.
func podsDir() string { return filepath.Join(plane.Dir, "pods") }
