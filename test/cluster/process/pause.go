package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// pauseTimeout bounds how long a stop may take to reach all threads: it is a matter
// of milliseconds, unless one of them waits for a disk.
const pauseTimeout = 10 * time.Second

// Pause stops the process with SIGSTOP, and returns when none of its threads runs
// any more: the signal alone takes a moment, in which they may still answer.
func (p *Process) Pause() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(pauseTimeout); ; time.Sleep(time.Millisecond) {
		stopped, err := allStopped(p.cmd.Process.Pid)
		if err != nil || stopped {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s still runs %s after SIGSTOP", p.name, pauseTimeout)
		}
	}
}

// Resume lets a paused process run on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// allStopped says whether all threads of a process are stopped.
func allStopped(pid int) (bool, error) {
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat"))
	if err != nil {
		return false, err
	}
	if len(threads) == 0 {
		return false, fmt.Errorf("there is no process %d", pid)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if os.IsNotExist(err) {
			continue // it ended meanwhile
		}
		if err != nil {
			return false, err
		}
		// The state follows the name, which is in parentheses and may have some itself.
		_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
		if !bytes.HasPrefix(state, []byte("T")) {
			return false, nil
		}
	}
	return true, nil
}
