package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/fencedlease/fencedlease/test/cluster/process"
)

// stopTimeout is for everything together; each process has a shorter one.
const stopTimeout = 3 * time.Minute

// stop ends what runs, if anything does.
func stop(ctx context.Context, at place, out io.Writer) error {
	turn, err := lockPatiently(ctx, at.turn())
	if err != nil {
		return err
	}
	defer func() { _ = turn.Close() }()
	pid, err := owner(at.running())
	if err != nil {
		return err
	}
	if pid == 0 {
		say(out, "It is not running.")
		return sweep(at, out)
	}
	err = terminate(ctx, pid, at.unowned)
	if err == nil {
		say(out, "Stopped.")
	}
	return errors.Join(err, sweep(at, out))
}

// terminate asks a process to end and waits until it is gone; one that stays is
// killed.
func terminate(ctx context.Context, pid int, gone func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, fmt.Errorf("process %d did not end within %s", pid, stopTimeout))
	defer cancel()
	// SIGCONT, because one that was paused could not act on the first.
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	for !gone() {
		if err := pause(ctx); err != nil {
			return errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	return nil
}

// unowned says whether nothing runs here.
func (p place) unowned() bool {
	pid, err := owner(p.running())
	return err == nil && pid == 0
}

// sweep ends what an owner left running that was killed, together with all that
// would have cleaned up after it, and deletes the files that say it is there.
func sweep(at place, out io.Writer) error {
	stopped, err := process.StopOrphans(at.cluster())
	for _, name := range stopped {
		say(out, "Stopped %s, left running by an earlier one.", name)
	}
	return errors.Join(err, os.RemoveAll(at.ready()), os.RemoveAll(at.kubeconfig()))
}
