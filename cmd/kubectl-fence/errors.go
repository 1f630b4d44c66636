package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// report prints an error, with what to do about the refusals in it, and returns
// the exit status: 1, unless the error has another.
func report(to io.Writer, err error) int {
	message := message(err)
	if message != "" {
		// Nobody is left to be told that standard error is closed.
		_, _ = fmt.Fprintln(to, message)
	}
	for _, reason := range reasonsIn(message) {
		_, _ = fmt.Fprintf(to, "%s: %s\n", reason, remedies[reason].remedy)
	}
	if strings.Contains(message, "cannot impersonate") {
		_, _ = fmt.Fprintln(to, "To carry a token beside a request you need the right to impersonate yourself: `kubectl fence check` says what is missing, with a role to apply")
	}
	var status interface{ ExitStatus() int }
	if errors.As(err, &status) {
		return status.ExitStatus()
	}
	return 1
}

// message is what an error says, as kubectl would print it, one line for each of
// several errors.
func message(err error) string {
	if several := errorsIn(err); len(several) > 0 {
		lines := make([]string, 0, len(several))
		for _, e := range several {
			lines = append(lines, message(e))
		}
		return strings.Join(lines, "\n")
	}
	var said failure
	if errors.As(err, &said) {
		return strings.TrimRight(said.message, "\n")
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if reason := status.Status().Reason; reason != "" {
			return fmt.Sprintf("Error from server (%s): %v", reason, err)
		}
		return fmt.Sprintf("Error from server: %v", err)
	}
	if meta.IsNoMatchError(err) && strings.Contains(err.Error(), v1alpha1.GroupVersion.Group) {
		return "error: FencedLease is not installed in this cluster: `kubectl fence check` says what is missing"
	}
	return "error: " + err.Error()
}

// errorsIn are the errors that were joined; none, if it is a single one.
func errorsIn(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	var aggregate utilerrors.Aggregate
	if errors.As(err, &aggregate) {
		return aggregate.Errors()
	}
	return nil
}
