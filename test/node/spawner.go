package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// spawner starts processes, all from one thread that lives as long as the agent. A
// parent-death signal comes when the thread that forked ends, and the Go runtime would
// end others as it likes. And being alone it may change its network namespace.
type spawner struct {
	jobs chan func()
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // and never unlocked: the thread goes with its processes
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// close ends the thread, and with it whatever process still runs.
func (s *spawner) close() {
	close(s.jobs)
	<-s.done
}

// start starts a command in a network namespace, or in the agent's if it is nil.
func (s *spawner) start(command *exec.Cmd, netns *os.File) error {
	return s.do(netns, command.Start)
}

// makeNamespace makes a network namespace that lives as long as the file is open or a
// process is in it.
func (s *spawner) makeNamespace() (netns *os.File, err error) {
	err = s.do(nil, func() error {
		home, err := openNamespace()
		if err != nil {
			return err
		}
		defer func() { _ = home.Close() }()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		if netns, err = openNamespace(); err == nil {
			err = enter(home)
		}
		if err != nil {
			panic(err) // the thread is nobody's now: what follows would run in the Pod
		}
		return nil
	})
	return netns, err
}

// do calls f on the thread, in a network namespace.
func (s *spawner) do(netns *os.File, f func() error) error {
	result := make(chan error, 1)
	s.jobs <- func() {
		if netns == nil {
			result <- f()
			return
		}
		home, err := openNamespace()
		if err != nil {
			result <- err
			return
		}
		defer func() { _ = home.Close() }()
		if err := enter(netns); err != nil {
			result <- err
			return
		}
		err = f()
		if back := enter(home); back != nil {
			panic(back) // whatever came next would happen in somebody else's network
		}
		result <- err
	}
	return <-result
}

func openNamespace() (*os.File, error) { return os.Open("/proc/thread-self/ns/net") }

func enter(netns *os.File) error {
	if err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter a network namespace: %w", err)
	}
	return nil
}
