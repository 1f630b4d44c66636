package process

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// reap waits for a word from the owner. If the pipe closes without one, the
// owner is gone, and what its pid files name is ended the way [StopOrphans]
// does it. This is a script because a test binary cannot be run again as
// something else.
const reap = `
trap '' HUP INT TERM
read -r word && exit
for file in "$1"/*.pid; do
	{ read -r pid && read -r program; } <"$file" || continue
	case "$(readlink "/proc/$pid/exe")" in "$program" | "$program (deleted)") ;; *) continue ;; esac
	tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qF "$1/" && kill -KILL "$pid"
done
`

// Reaper is a process that ends the children of its owner if the owner goes
// away without calling Release: after a panic, a test that ran into its
// timeout, or SIGKILL.
type Reaper struct {
	cmd   *exec.Cmd
	owner io.WriteCloser
}

// Reap starts a Reaper for the processes that have their pid files in dir, now
// or later.
func Reap(dir string) (*Reaper, error) {
	r := &Reaper{cmd: &exec.Cmd{
		Path: "/bin/sh",
		Args: []string{"/bin/sh", "-c", reap, "reaper", dir},
		// In a session of its own it misses the signals that end the owner.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}}
	var err error
	if r.owner, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	return r, nil
}

// Release ends the Reaper: the children are stopped, or somebody else's.
func (r *Reaper) Release() error {
	_, err := io.WriteString(r.owner, "released\n")
	return errors.Join(err, r.owner.Close(), r.cmd.Wait())
}
