// Package run is what `kubectl fence run` does: it competes for a Lease, runs a
// command in the term that it gets, and ends the command with the term.
//
// The election is that of package leader, the processes are those of package
// keeper. What is added here: the environment that gives the command its claim
// (kubeconfig.go), waiting for the Lease (waiting.go), and what becomes of signals
// and of the exit status (job_unix.go).
package run

// The exit statuses that are not the command's own: 125 to 127 as with timeout(1) and
// env(1), 75 and 76 from sysexits.h, where few commands have theirs.
const (
	// StatusNotAcquired says that the Lease was not acquired in the time that was
	// given, and the command not started: EX_TEMPFAIL.
	StatusNotAcquired = 75

	// StatusLost says that the term was lost, and the command killed: EX_PROTOCOL.
	StatusLost = 76

	// StatusFailed says that something else went wrong: in the arguments, or with
	// the API server.
	StatusFailed = 125

	// StatusNotExecutable says that the command cannot be executed.
	StatusNotExecutable = 126

	// StatusNotFound says that there is no such command.
	StatusNotFound = 127
)

// The environment that the command gets.
const (
	TokenVariable       = "FENCING_TOKEN"
	FencedLeaseVariable = "FENCED_LEASE"
	kubeconfigVariable  = "KUBECONFIG"
)
