package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setupTimeout is how long a container may take from its fork to its program.
const setupTimeout = 30 * time.Second

// process is the first process of a container.
type process struct {
	command *exec.Cmd
	done    chan struct{}
}

// startProcess starts a container: this program as a child in new namespaces, which
// arranges them and becomes the container's program. What it says goes to the log.
func startProcess(s *spawner, netns *os.File, setup *containerSetup, log *os.File) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// The child has this pipe as long as it is not the program yet; what it says there
	// is why it failed.
	failures, failure, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = failures.Close() }()
	defer func() { _ = failure.Close() }()
	// This one is open for writing as long as the agent lives and waits for the child.
	input, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = input.Close() }()
	defer func() { _ = orders.Close() }()

	command := &exec.Cmd{
		Path: program, Args: []string{"node", initCommand}, Env: os.Environ(),
		Stdout: log, Stderr: log,
		ExtraFiles: []*os.File{input, failure},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
			Pdeathsig:  syscall.SIGKILL,
			Setsid:     true,
		},
	}
	if err := s.start(command, netns); err != nil {
		return nil, err
	}
	p := &process{command: command, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = command.Wait() // how it ended is in the state of the process
	}()
	if err := errors.Join(failure.Close(), input.Close(), p.setup(setup, orders, failures)); err != nil {
		p.signal(syscall.SIGKILL)
		<-p.done
		return nil, err
	}
	return p, nil
}

// setup gives the child its orders, and waits until it is the program.
func (p *process) setup(setup *containerSetup, orders, failures *os.File) error {
	deadline := time.Now().Add(setupTimeout)
	if err := errors.Join(orders.SetWriteDeadline(deadline), failures.SetReadDeadline(deadline)); err != nil {
		return err
	}
	if err := json.NewEncoder(orders).Encode(setup); err != nil {
		return fmt.Errorf("the container did not begin: %w", err)
	}
	said, err := io.ReadAll(failures)
	if err != nil {
		return fmt.Errorf("the container did not begin: %w", err)
	}
	if len(said) > 0 {
		return errors.New(string(said))
	}
	return nil
}

// pid is the process as the agent sees it; in the container it is 1.
func (p *process) pid() int { return p.command.Process.Pid }

// signal sends a signal, which a process that has ended does not mind.
func (p *process) signal(signal syscall.Signal) { _ = p.command.Process.Signal(signal) }

// exit says how the process ended, as a container runtime does.
func (p *process) exit() (code, signal int32) {
	status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return 255, 0
	case status.Signaled():
		signal = int32(status.Signal() & 0x7f)
		return 128 + signal, signal
	default:
		return int32(status.ExitStatus() & 0xff), 0
	}
}
