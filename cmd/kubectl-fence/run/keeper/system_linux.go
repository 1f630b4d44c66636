package keeper

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes are those of the command: in a process group of its own, with the
// terminal where it is to have it, and killed when the keeper dies.
func attributes(foreground bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Foreground: foreground, Ctty: terminal, Pdeathsig: syscall.SIGKILL}
}

// ownPath is the path of this program, which may have been replaced meanwhile.
func ownPath() (string, error) { return "/proc/self/exe", nil }

// adoptOrphans makes this process the parent of what its descendants leave behind.
func adoptOrphans() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// now is the time, in nanoseconds, on a clock that all processes share and that
// goes on while the machine sleeps.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 1<<63 - 1 // it cannot fail; if it does, everything has expired
	}
	return t.Nano()
}

// instant is a time on the clock of [now].
func instant(t time.Time) int64 {
	before := now() // so that a pause in between makes it earlier, not later
	return before + int64(time.Until(t))
}

// killDescendants kills all descendants of this process until none is left, and
// returns how many cannot be killed.
func killDescendants(group int) (immortal int) {
	for ; ; time.Sleep(killInterval) {
		var left int
		if left, immortal = signalDescendants(); left == 0 {
			return immortal
		}
		killGroup(group)
	}
}

// signalDescendants sends SIGKILL to all descendants of this process. It returns
// how many there were, and how many more may not be killed. Those that are born
// meanwhile are left for the next time: their parents do not live to bear others.
func signalDescendants() (left, immortal int) {
	children := processes()
	for parents := []int{os.Getpid()}; len(parents) > 0; {
		var found []int
		for _, parent := range parents {
			for _, p := range children[parent] {
				found = append(found, p.pid)
				// Process ids go round in a circle, so this is not another one yet.
				err := unix.Kill(p.pid, unix.SIGKILL)
				switch {
				case p.ended: // or only its first thread, so the signal is not lost
				case errors.Is(err, unix.EPERM):
					immortal++
				case err == nil:
					left++
				}
			}
		}
		parents = found
	}
	return left, immortal
}

// process is one of those in /proc.
type process struct {
	pid   int
	ended bool // and nobody has waited for it
}

// processes are all that there are, by their parents.
func processes() map[int][]process {
	children := map[int][]process{}
	entries, _ := os.ReadDir("/proc") // those that could be read, in any case
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // it is no process
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue // it is gone
		}
		// PID (COMMAND) STATE PARENT …, and COMMAND may have anything in it.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		parent, err := strconv.Atoi(string(fields[1]))
		if err != nil {
			continue
		}
		state := string(fields[0])
		children[parent] = append(children[parent], process{pid, state == "Z" || state == "X"})
	}
	return children
}
