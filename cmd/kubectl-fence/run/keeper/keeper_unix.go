//go:build unix

package keeper

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookInterval is how often the keeper looks at the clock: the timers of Go
	// stand still while the machine sleeps.
	lookInterval = 50 * time.Millisecond

	// killInterval is how often it kills again what was born meanwhile.
	killInterval = 5 * time.Millisecond
)

// Main is the keeper: a process that runs one command for its owner. Its arguments
// are the file descriptor of the socket between them, the path of the command, and
// the command's own, its name first. It returns when the command is over.
func Main(args []string) error {
	// The kernel kills the command when the thread that forked it ends; this one
	// ends with the process.
	runtime.LockOSThread()
	if len(args) < 3 {
		return errNotForPeople
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil {
		return errNotForPeople
	}
	unix.CloseOnExec(fd)
	line, err := newLine(fd)
	if err != nil {
		return errNotForPeople
	}
	k := &keeper{line: line, orders: make(chan order), children: make(chan child)}
	return k.main(args[1], args[2:])
}

var errNotForPeople = errors.New("this command is for `kubectl fence run` itself")

// keeper is the state of the process.
type keeper struct {
	line     *line
	orders   chan order // closed when the owner is gone
	children chan child // closed when there is none left
	deadline int64

	leader  int // the command's process, and its group; 0 once it has ended
	group   int
	killing bool
	outcome Outcome
}

// child is a child that stopped or ended; an orphan of the command, or itself.
type child struct {
	pid    int
	status unix.WaitStatus
}

func (k *keeper) main(path string, args []string) error {
	stayAlive()
	if err := adoptOrphans(); err != nil {
		return err
	}
	go k.listen()
	first, ok := <-k.orders
	if !ok || first.Start == nil {
		return errNotForPeople
	}
	k.deadline = first.Deadline
	if k.expired() {
		k.outcome.Killed = true
	} else if err := k.start(path, args, first.Start.Foreground); err != nil {
		k.outcome.NotStarted, k.outcome.Status = path+": "+err.Error(), ExitStatus(err)
	} else {
		k.keep(first.Start.Foreground)
	}
	// The owner does it as well, if there still is one.
	_ = os.RemoveAll(first.Start.Scratch)
	k.line.send(report{Over: &k.outcome})
	return nil
}

// start starts the command.
func (k *keeper) start(path string, args []string, foreground bool) error {
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: attributes(foreground),
	})
	if err != nil {
		return err
	}
	k.leader, k.group = pid, pid
	k.line.send(report{Started: pid})
	go k.reap()
	return nil
}

// keep returns when the command is over: its process has ended, and so have all
// others that it left behind.
func (k *keeper) keep(foreground bool) {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	orders := k.orders
	for {
		select {
		case o, ok := <-orders:
			if !ok {
				orders = nil // the owner is gone
				o.Kill = true
			}
			k.obey(o)
		case c, ok := <-k.children:
			switch {
			case !ok:
				killGroup(k.group) // on a system without subreapers
				return
			case c.pid != k.leader:
				// An orphan.
			case c.status.Stopped():
				if foreground && !k.killing && byTerminal(c.status.StopSignal()) {
					k.line.send(report{Stopped: true})
				}
			default:
				k.outcome.Status = exitStatus(c.status)
				k.leader = 0
				k.killing = true // what it left behind
			}
		case <-look.C:
			if k.expired() {
				k.kill()
			}
		}
		if k.killing {
			look.Reset(killInterval)
			if k.leader != 0 { // its process id is not reused before it is reaped
				killGroup(k.group)
			}
			var left int
			if left, k.outcome.Immortal = signalDescendants(); left == 0 && k.outcome.Immortal > 0 {
				return
			}
		}
	}
}

func (k *keeper) obey(o order) {
	if o.Deadline != 0 {
		k.deadline = o.Deadline
	}
	if o.Signal != 0 && k.leader != 0 {
		_ = unix.Kill(-k.group, o.Signal)
		if o.Signal != unix.SIGUSR1 && o.Signal != unix.SIGUSR2 {
			_ = unix.Kill(-k.group, unix.SIGCONT) // what is stopped could not end
		}
	}
	if o.Kill {
		k.kill()
	}
}

// kill has everything killed, from now on until nothing is left.
func (k *keeper) kill() {
	if k.leader != 0 {
		k.outcome.Killed = true
	}
	k.killing = true
}

// expired says whether the deadline has passed: once, forever.
func (k *keeper) expired() bool {
	if k.leader != 0 || k.group == 0 { // else it is over already, in good time
		k.outcome.Expired = k.outcome.Expired || now() >= k.deadline
	}
	return k.outcome.Expired
}

// listen receives the orders.
func (k *keeper) listen() {
	defer close(k.orders)
	for {
		var o order
		if err := k.line.decoder.Decode(&o); err != nil {
			return
		}
		k.orders <- o
	}
}

// reap waits for children until there is none: neither the command nor, where
// orphans come to us, anything that it ever started.
func (k *keeper) reap() {
	defer close(k.children)
	for {
		var c child
		var err error
		c.pid, err = unix.Wait4(-1, &c.status, unix.WUNTRACED, nil)
		switch {
		case err == nil:
			k.children <- c
		case !errors.Is(err, unix.EINTR):
			return // ECHILD
		}
	}
}

// Catch has the signals sent to a channel that people and shells end jobs with, and
// those that mean something to the command only. What was ignored from the start
// stays so (nohup, jobs in the background).
func Catch(to chan<- os.Signal) {
	for _, s := range []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2,
	} {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}

// stayAlive catches signals for nobody: whoever wants the command to end tells the
// owner. They are not ignored, because the command would inherit that.
func stayAlive() {
	nobody := make(chan os.Signal, 1)
	Catch(nobody)
	signal.Notify(nobody, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
}

// exitStatus is how a shell shows how a process ended.
func exitStatus(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// byTerminal says whether it is the terminal that sends such a signal.
func byTerminal(s unix.Signal) bool {
	return s == unix.SIGTSTP || s == unix.SIGTTIN || s == unix.SIGTTOU
}

// killGroup kills a process group, as far as there is one.
func killGroup(group int) {
	if group != 0 {
		_ = unix.Kill(-group, unix.SIGKILL)
	}
}
