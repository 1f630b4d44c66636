package chart

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// serviceAddress is where the webhooks of the release are reached. Kubernetes lets
// no Service have a loopback address, so this is another one, on the loopback
// interface of a network namespace that has nothing else.
const serviceAddress = "10.77.0.1"

// insideVariable tells a test process that it is in that namespace.
const insideVariable = "FENCEDLEASE_CHART_NETWORK"

// inside runs this test program again in a network namespace of its own, so that
// nothing of it can be reached from elsewhere, and returns its exit status.
func inside() (int, error) {
	runtime.LockOSThread() // the child dies with the thread that made it
	command := exec.Command(os.Args[0], os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), insideVariable+"=yes")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 { // whoever is not root needs to be, in a namespace for that
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	err := command.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("these tests need a network namespace of their own, as root or where users may make one: %w", err)
	}
	return 0, nil
}

// connect gives the namespace its addresses.
func connect() error {
	for _, args := range [][]string{
		{"link", "set", "dev", "lo", "up"},
		{"address", "add", serviceAddress + "/32", "dev", "lo"},
	} {
		if output, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, output)
		}
	}
	return nil
}
