package run

import (
	"io"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/leader"
)

// Job is a command to run in a term of a Lease.
type Job struct {
	Config      *rest.Config   // of the candidate, and of the command
	FencedLease string         // its name
	Election    leader.Options // complete, but for Logger; no Seal
	Seal        []leader.Target

	// Wait is how long to compete for the Lease, 0 for ever. With NoWait it is
	// taken if nobody else has it.
	Wait   time.Duration
	NoWait bool

	// Command is the command, its name first.
	Command []string

	// GracePeriod is how long the command may take to end after a signal that asks
	// it to.
	GracePeriod time.Duration

	Stderr io.Writer
	Quiet  bool // only failures are told
}
