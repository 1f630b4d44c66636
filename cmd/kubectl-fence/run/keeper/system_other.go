//go:build unix && !linux

package keeper

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes are those of the command: in a process group of its own, with the
// terminal where it is to have it.
func attributes(foreground bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Foreground: foreground, Ctty: terminal}
}

// ownPath is the path of this program.
func ownPath() (string, error) { return os.Executable() }

// adoptOrphans does nothing: they go to process 1, and are out of reach.
func adoptOrphans() error { return nil }

// now is the time, in nanoseconds, on a clock that all processes share.
func now() int64 { return time.Now().UnixNano() }

// instant is a time on the clock of [now].
func instant(t time.Time) int64 {
	before := now()
	return before + int64(time.Until(t))
}

// killDescendants kills the process group of the command until it is gone.
func killDescendants(group int) (immortal int) {
	for group != 0 && unix.Kill(-group, unix.SIGKILL) == nil {
		time.Sleep(killInterval)
	}
	return 0
}

// signalDescendants does nothing: there is no way to find them.
func signalDescendants() (left, immortal int) { return 0, 0 }
