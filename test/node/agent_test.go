package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	nodeName  = "node-1"
	imageName = "registry.example/testapp:1.0"
	bridge    = "pods0"
)

// testAgent is the agent as a process.
type testAgent struct {
	dir, image string
	command    *exec.Cmd
	done       chan error
}

// start starts an agent, and waits until its node is ready.
func (a *testAgent) start(ctx context.Context) error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	output, err := os.OpenFile(a.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }()
	a.command = exec.Command(os.Args[0], "--kubeconfig="+plane.KubeconfigPath, "--name="+nodeName,
		"--dir="+a.dir, "--bridge="+bridge, "--address=10.78.0.1/24", "--image="+imageName+"="+a.image,
		"--sync-period=200ms")
	a.command.Env = append(os.Environ(), agentVariable+"=yes")
	a.command.Stdout, a.command.Stderr = output, output
	begin := time.Now().Truncate(time.Second)
	if err := a.command.Start(); err != nil {
		return err
	}
	command, done := a.command, make(chan error, 1)
	a.done = done
	go func() { done <- command.Wait() }()
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		node, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err == nil && len(node.Status.Conditions) > 0 && !node.Status.Conditions[0].LastHeartbeatTime.Time.Before(begin) {
			return nil
		}
		select {
		case err := <-a.done:
			return fmt.Errorf("the agent ended: %w\n%s", err, a.said())
		default:
		}
	}
	return fmt.Errorf("the node is not ready: %w\n%s", ctx.Err(), a.said())
}

// stop ends the agent with a signal, and looks at what it said.
func (a *testAgent) stop(signal syscall.Signal) error {
	if err := a.command.Process.Signal(signal); err != nil {
		return err
	}
	select {
	case err := <-a.done:
		if err != nil && signal != syscall.SIGKILL {
			return fmt.Errorf("the agent: %w\n%s", err, a.said())
		}
	case <-time.After(10 * time.Second):
		_ = a.command.Process.Kill()
		return errors.New("the agent did not end\n" + a.said())
	}
	if said := a.said(); strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic:") {
		return errors.New(said)
	}
	return nil
}

func (a *testAgent) log() string { return filepath.Join(a.dir, "agent.log") }

func (a *testAgent) said() string {
	data, err := os.ReadFile(a.log())
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Whoever is not root is told.
func TestNotRoot(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "--kubeconfig=none", "--dir=none")
	command.Env = append(os.Environ(), agentVariable+"=yes")
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	output, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "run this as root") {
		t.Errorf("%v: %s", err, output)
	}
}
