package scripts

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fencedlease/fencedlease/test/suite"
)

// newTerminal is a terminal: what is written to ours is typed, and what programs
// write to theirs is read from it.
func newTerminal(w *suite.World) (ours, theirs *os.File) {
	w.T.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	w.Must(err)
	w.T.Cleanup(func() { _ = ours.Close() })
	control, err := ours.SyscallConn()
	w.Must(err)
	var number int
	w.Must(control.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}))
	w.Must(err)
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	w.Must(err)
	w.T.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

// atTerminal starts an interactive shell at a terminal, and returns what types.
func (h host) atTerminal() (*process, func(string)) {
	h.w.T.Helper()
	ours, theirs := newTerminal(h.w)
	shell := h.with("PS1=ready; ", "TERM=dumb").startWith(func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, "bash", "--norc", "--noediting", "-i")
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := ours.Read(buffer)
			_, _ = shell.stdout.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	shell.prints("ready; ")
	return shell, func(text string) {
		h.w.T.Helper()
		_, err := ours.WriteString(text)
		h.w.Must(err)
	}
}

// TestTerminal: the command has the terminal, with Ctrl-C, and Ctrl-Z stops the whole
// job, which goes on where it was if the term is still there.
func TestTerminal(t *testing.T) {
	w, ann := story(t)
	ann.file("ask.sh", `#!/bin/sh
trap 'echo interrupted; exit 5' INT
echo "question?"
read answer
echo "answer $answer"
while :; do sleep 0.1; done
`)
	shell, typed := ann.atTerminal()
	typed("kubectl fence run payments -- ./ask.sh; echo status $?\n")
	shell.prints("question?")
	typed("42\n")
	shell.prints("answer 42")
	typed("\x03")
	shell.prints("interrupted")
	shell.prints("status 5")
	released(w)

	typed("kubectl fence run payments -- sh -c './ask.sh; echo over; exit 6'\n")
	w.Eventually("it asks again", func() error { return has(shell, "question?", 2) })
	typed("\x1a")
	shell.prints("Stopped")
	typed("echo the shell is $((40+4))\n")
	shell.prints("the shell is 44")
	typed("fg\n")
	typed("43\n")
	shell.prints("answer 43")
	typed("\x1a")
	w.Eventually("it is stopped again", func() error { return has(shell, "Stopped", 2) })
	time.Sleep(renewDeadline) // what is stopped does not renew
	typed("fg; echo status $?\n")
	shell.prints("status 76")
	typed("exit\n")
	shell.exits(0)
}
