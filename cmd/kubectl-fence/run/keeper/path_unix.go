//go:build unix

package keeper

import (
	"errors"
	"io/fs"
	"os/exec"
)

// The exit statuses of a command that does not start, as shells have them.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

// ExitStatus is that of a command that does not start for this reason.
func ExitStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return StatusNotFound
	}
	return StatusNotExecutable
}

// LookPath is the path of a command: itself, if it has a slash, and else where PATH
// says. As for shells, that may be the working directory.
func LookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	return path, err
}
