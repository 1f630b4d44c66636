// Package process runs programs as children that do not outlive their owner,
// not even one that crashes or is killed.
//
// Every child records its process id in a file before it becomes the program it
// is meant to be (pidfile.go). A [Reaper] stands by for the day when the owner
// disappears without a word and ends what the files name (reaper.go). Whoever
// comes later can do the same with [StopOrphans].
//
// Linux's parent-death signal would be simpler, and wrong: it fires when the
// thread that forked ends, and the Go runtime ends threads as it likes. Nor can
// it be set on children that a library starts.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Process is a running, or by now ended, child.
type Process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; to be read once done is closed

	settled bool // whether the owner ended it, or was told how it ended
}

// Start runs the program at path under a name, with its output appended to the
// file log and its process id in dir/name.pid. The directory must appear in one
// of the arguments: it is how the process is recognized later.
func Start(dir, name, path, log string, args ...string) (*Process, error) {
	return StartAs(nil, dir, name, path, log, args...)
}

// StartAs is [Start] as another user, who must be able to reach dir and to write to it;
// nil for the user of this process. Some servers refuse to run as root.
func StartAs(user *syscall.Credential, dir, name, path, log string, args ...string) (*Process, error) {
	shim, err := Shim(dir, name, path)
	if err != nil {
		return nil, err
	}
	if user != nil {
		if err := os.Chown(shim, int(user.Uid), int(user.Gid)); err != nil {
			return nil, err
		}
	}
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }()

	// There is no context that ends it: whoever starts a process decides how.
	p := &Process{name: name, done: make(chan struct{}), cmd: &exec.Cmd{
		Path:   shim,
		Args:   append([]string{shim}, args...),
		Stdout: output,
		Stderr: output,
		// A Ctrl-C at the terminal is for the owner, which then stops its
		// children in order.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Credential: user},
	}}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the process. It is no error if it has ended.
func (p *Process) Signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", signal, p.name, err)
	}
	return nil
}

// Stop asks the process to end (SIGTERM) and kills it if it has not after the
// grace period. The error says if it had to be killed, or how it failed: by
// itself, too, but the first time only.
func (p *Process) Stop(grace time.Duration) error {
	if p.settled {
		return nil
	}
	p.settled = true
	select {
	case <-p.done:
		return p.failure()
	default:
	}
	// SIGCONT, because one that was paused could not act on the first.
	if err := errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT)); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.failure()
	case <-time.After(grace):
		return errors.Join(fmt.Errorf("%s did not end within %s and was killed", p.name, grace), p.Kill())
	}
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() error {
	p.settled = true
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// failure says how the process failed, nil if it did not.
func (p *Process) failure() error {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	terminated := ok && status.Signaled() && status.Signal() == syscall.SIGTERM
	if p.err == nil || terminated { // it had no handler for the signal, or not yet
		return nil
	}
	return fmt.Errorf("%s: %w", p.name, p.err)
}

// Tail returns the last lines of a log file, indented, for an error message.
func Tail(log string, lines int) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return "  (no log: " + err.Error() + ")"
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
