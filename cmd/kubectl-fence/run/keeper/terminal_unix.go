//go:build unix

package keeper

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// terminal is the file descriptor of the terminal, if there is one.
const terminal = 0

// isForeground says whether standard input is a terminal that is ours to read.
// Then it is the command's, while that runs: it can ask, and Ctrl-C goes to it.
func isForeground() bool {
	group, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// takeTerminalBack gives the terminal to us, if it still is with that group: a
// shell that has put us into the background meanwhile keeps it.
func takeTerminalBack(from int) {
	if group, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP); err == nil && group == from {
		setForeground(unix.Getpgrp())
	}
}

// setForeground gives the terminal to a process group.
func setForeground(group int) {
	signal.Ignore(unix.SIGTTOU) // what the terminal does to who is in the background
	_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, group)
}
