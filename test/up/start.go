package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/fencedlease/fencedlease/test/cluster/process"
)

// startTimeout is for everything together; each step has a shorter one.
const startTimeout = 5 * time.Minute

// start has everything running in the background when it returns.
func start(ctx context.Context, at place, out io.Writer) error {
	turn, err := lockPatiently(ctx, at.turn())
	if err != nil {
		return err
	}
	defer func() { _ = turn.Close() }()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()

	pid, err := owner(at.running())
	if err != nil {
		return err
	}
	if pid != 0 {
		say(out, "It runs already.")
		if err := waitReady(ctx, at, io.Discard, at.unowned); err != nil {
			return fmt.Errorf("%w\n%s", err, process.Tail(at.log(), 20))
		}
		return printGuide(out, at)
	}
	return startDaemon(ctx, at, out)
}

// startDaemon runs `up run` in the background and follows its log until it is
// ready. The guide is the end of that log.
func startDaemon(ctx context.Context, at place, out io.Writer) error {
	if err := os.RemoveAll(at.ready()); err != nil {
		return err
	}
	log, err := os.OpenFile(at.log(), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	daemon := &exec.Cmd{
		Path:   self,
		Args:   []string{self, "-dir", string(at), "run"},
		Stdout: log,
		Stderr: log,
		// In a session of its own it outlives this process and its terminal.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := daemon.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = daemon.Wait() // its log says why
		close(ended)
	}()

	gone := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	if err := waitReady(ctx, at, out, gone); err != nil {
		// Gone, too late, or interrupted: nothing stays half started.
		return errors.Join(err, terminate(context.WithoutCancel(ctx), daemon.Process.Pid, gone))
	}
	return nil
}

// waitReady copies the log to out until the file is there that says ready.
func waitReady(ctx context.Context, at place, out io.Writer, gone func() bool) error {
	log, err := os.Open(at.log())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	for {
		// What was there before the log was read is explained by the log.
		_, notReady := os.Stat(at.ready())
		wasGone := gone()
		if _, err := io.Copy(out, log); err != nil {
			return err
		}
		if notReady == nil {
			return nil
		}
		if wasGone {
			return fmt.Errorf("it ended before it was ready; its log is %s", relative(at.log()))
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}
