//go:build !unix

package run

import (
	"context"
	"errors"
	"fmt"
)

// errUnsupported says that this system has no process groups and no signals.
var errUnsupported = errors.New("it needs Linux, macOS or another Unix")

// Run says that it cannot be done here.
func (j Job) Run(context.Context) int {
	_, _ = fmt.Fprintln(j.Stderr, "kubectl fence run:", errUnsupported)
	return StatusFailed
}

// Keeper is the name of the command that is [Keep].
const Keeper = "run-keeper"

// Keep says that it cannot be done here.
func Keep([]string) error { return errUnsupported }
