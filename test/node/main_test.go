package main

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
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fencedlease/fencedlease/test/cluster"
)

const (
	// insideVariable tells a test process that it is in namespaces of its own.
	insideVariable = "FENCEDLEASE_NODE_INSIDE"
	// agentVariable makes the test program the agent, with its arguments.
	agentVariable = "FENCEDLEASE_NODE_AGENT"
)

// The control plane and the node of all tests.
var (
	plane  *cluster.Cluster
	client kubernetes.Interface
	agents *testAgent
)

func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) != "" {
		main()
		return
	}
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

// inside runs this test program again in a network and mount namespace of its own, and
// returns its exit status.
func inside() (int, error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("run these tests as root: a node makes namespaces and network interfaces, and its containers have users")
	}
	runtime.LockOSThread() // the child dies with the thread that made it
	command := exec.Command(os.Args[0], os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), insideVariable+"=yes")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := command.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func run(m *testing.M) (code int, err error) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	for _, args := range [][]string{
		{"link", "set", "dev", "lo", "up"},
		{"address", "add", cluster.ServiceAddress + "/32", "dev", "lo"},
	} {
		if output, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return 1, fmt.Errorf("ip %v: %w: %s", args, err, output)
		}
	}
	dir, err := os.MkdirTemp("", "fencedlease-node-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	plane, err = cluster.Start(ctx, cluster.Options{Workloads: true})
	if err != nil {
		return 1, fmt.Errorf("the control plane did not start: %w", err)
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if client, err = kubernetes.NewForConfig(plane.Admin); err != nil {
		return 1, err
	}
	if err := buildImage(ctx, filepath.Join(dir, "image")); err != nil {
		return 1, err
	}
	agents = &testAgent{dir: filepath.Join(dir, "node"), image: filepath.Join(dir, "image")}
	if err := agents.start(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, agents.stop(syscall.SIGTERM)) }()
	return m.Run(), nil
}

// buildImage makes an image of testapp.
func buildImage(ctx context.Context, dir string) error {
	root := filepath.Join(dir, "rootfs")
	if err := os.MkdirAll(root, openDir); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(root, "testapp"), "./testapp")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build testapp: %w: %s", err, output)
	}
	config := `{"config": {"User": "65532:65532", "Entrypoint": ["/testapp"], "Cmd": ["serve"], "Env": ["FROM_IMAGE=yes"], "WorkingDir": "/"}}`
	return os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600)
}
