//go:build unix

package keeper

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is what a keeper runs.
type Command struct {
	Path string   // of the program
	Args []string // its name first
	Env  []string // each name=value

	// Scratch is a directory that is deleted when the command is over, whoever is
	// left to do it.
	Scratch string
}

// Outcome is how a command ended; all of its processes have.
type Outcome struct {
	// NotStarted is why the command did not start, with an [ExitStatus] for it;
	// else "".
	NotStarted string `json:"notStarted,omitempty"`

	// Status is that of the command, as a shell would have it: 128 and the signal
	// if one killed it.
	Status int `json:"status"`

	// Killed says that it was killed, by the owner's order or because of Expired.
	Killed bool `json:"killed"`

	// Expired says that the deadline passed.
	Expired bool `json:"expired"`

	// KeeperGone says that the keeper ended before the command did, which was
	// killed. There is no Status then.
	KeeperGone bool `json:"keeperGone,omitempty"`

	// Immortal is how many processes could not be killed, because another user
	// runs them (sudo).
	Immortal int `json:"immortal"`
}

// Event is one of two things: the terminal stopped the command (Ctrl-Z), or it is
// over.
type Event struct {
	Stopped bool
	Over    *Outcome
}

// Keeper is a running command, as its owner sees it. Its methods are for one
// goroutine.
type Keeper struct {
	line       *line
	pid        int // of the keeper
	group      int // of the command; 0 until it has started
	foreground bool
	events     chan Event

	mu    sync.Mutex
	ended bool // the keeper
}

// Verb is the argument that makes this program a keeper: see [Main].
const Verb = "run-keeper"

// patience is how long the keeper has to carry out a kill before the owner does.
const patience = time.Second

// Start starts a command that is killed at the deadline, unless it is extended. A
// terminal that is its standard input, and ours to read, is the command's until it
// is over.
func Start(command Command, deadline time.Time) (*Keeper, error) {
	if err := adoptOrphans(); err != nil { // of the keeper, should it go
		return nil, err
	}
	self, err := ownPath()
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketpair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(theirs) }()
	line, err := newLine(ours)
	if err != nil {
		return nil, err
	}

	// Files that whoever started us left open for the command stay where they are.
	files := []uintptr{0, 1, 2}
	for fd := len(files); isInherited(fd); fd++ {
		files = append(files, uintptr(fd))
	}
	args := append([]string{"kubectl-fence", Verb, strconv.Itoa(len(files)), command.Path}, command.Args...)
	pid, err := syscall.ForkExec(self, args, &syscall.ProcAttr{
		Env:   command.Env,
		Files: append(files, uintptr(theirs)),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		_ = line.Close()
		return nil, fmt.Errorf("start %s again, to watch over the command: %w", self, err)
	}
	k := &Keeper{line: line, pid: pid, foreground: isForeground(), events: make(chan Event, 1)}
	line.send(order{Start: &start{Scratch: command.Scratch, Foreground: k.foreground}, Deadline: instant(deadline)})
	go k.listen()
	return k, nil
}

// Extend moves the deadline.
func (k *Keeper) Extend(deadline time.Time) { k.line.send(order{Deadline: instant(deadline)}) }

// Signal sends a signal to the command's process group.
func (k *Keeper) Signal(signal syscall.Signal) { k.line.send(order{Signal: signal}) }

// Kill kills all processes of the command. It does not wait: see [Keeper.Events].
func (k *Keeper) Kill() {
	k.line.send(order{Kill: true})
	// Still there? It is stopped, or hangs. Once it is gone, the rest is ours.
	time.AfterFunc(patience, k.end)
}

// end ends the keeper, once.
func (k *Keeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended { // and its process id may be another's
		return
	}
	k.ended = true
	_ = unix.Kill(k.pid, unix.SIGKILL)
	for {
		if _, err := unix.Wait4(k.pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Events tells what happens to the command. It is closed after the last event,
// which has Over: by then none of its processes is left.
func (k *Keeper) Events() <-chan Event { return k.events }

// listen passes on what the keeper says, until the command is over.
func (k *Keeper) listen() {
	defer close(k.events)
	for {
		var r report
		if err := k.line.decoder.Decode(&r); err != nil {
			break
		}
		if r.Started != 0 {
			k.group = r.Started
		}
		if r.Stopped {
			k.events <- Event{Stopped: true}
		}
		if r.Over != nil {
			k.over(r.Over)
			return
		}
	}
	k.end() // should it only have closed the socket
	k.over(&Outcome{KeeperGone: true, Killed: true, Immortal: killDescendants(k.group)})
}

// over tells that the command is over.
func (k *Keeper) over(outcome *Outcome) {
	_ = k.line.Close()
	k.end() // it has nothing left to do
	if k.foreground {
		takeTerminalBack(k.group)
	}
	k.events <- Event{Over: outcome}
}

// Suspend does for ourselves what Ctrl-Z did for the command: the shell that
// started us is to see its job stopped. Nothing proves the term meanwhile, so the
// keeper kills the command at the deadline. When the shell continues us, the
// command goes on, with the terminal if we have it again.
func (k *Keeper) Suspend() {
	takeTerminalBack(k.group)
	_ = unix.Kill(0, unix.SIGTSTP)
	time.Sleep(suspendDelay) // it stops all threads, not just the one that gets it
	if isForeground() {
		setForeground(k.group)
	}
	k.Signal(syscall.SIGCONT)
}

// suspendDelay is longer than it takes until a stop has reached all threads.
const suspendDelay = 50 * time.Millisecond

// socketpair is a socket with two ends, which no program inherits unless told to.
func socketpair() (ours, theirs int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return fds[0], fds[1], nil
}

// isInherited says whether a file descriptor is one that we were started with. All
// that Go opens is closed on exec.
func isInherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}
