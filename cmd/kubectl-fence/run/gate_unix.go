//go:build unix

package run

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/fencedlease/fencedlease/cmd/kubectl-fence/run/keeper"
)

// gate decides what happens first: the command starts, or somebody gives up. A
// signal before the start ends the candidacy; after it, the signal is the command's.
type gate struct {
	signals chan syscall.Signal // for the command

	stop        context.CancelFunc // of the candidacy
	stopWaiting context.CancelFunc // for the Lease
	caught      chan os.Signal

	mu      sync.Mutex
	started bool
	has     bool // acquired
	closed  *result
}

// newGate is a gate that ends a candidacy, and, before that, the wait for the Lease.
func newGate(stop, stopWaiting context.CancelFunc) *gate {
	g := &gate{
		signals: make(chan syscall.Signal, 16), caught: make(chan os.Signal, 16),
		stop: stop, stopWaiting: stopWaiting,
	}
	keeper.Catch(g.caught)
	go g.serve()
	return g
}

// serve takes signals until the gate is closed. They stay caught then: what is left
// to do is to release the Lease, which is bounded, and worth it.
func (g *gate) serve() {
	for s := range g.caught {
		s, ok := s.(syscall.Signal)
		if !ok || s == syscall.SIGPIPE { // standard error is closed; nothing ends for that
			continue
		}
		g.mu.Lock()
		started := g.started
		g.mu.Unlock()
		switch {
		case started:
			select {
			case g.signals <- s:
			default: // it has as many to see to as a process would remember
			}
		case ends(s):
			g.shut(result{status: 128 + int(s)})
		}
	}
}

// ends says whether a signal asks a program to end.
func ends(s syscall.Signal) bool { return s != syscall.SIGUSR1 && s != syscall.SIGUSR2 }

// acquired notes that the Lease is ours: nobody waits for it any more.
func (g *gate) acquired() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.has = true
	g.stopWaiting()
}

// lost notes that the term was over before the command could start, and ends the
// candidacy if there is no time to wait for another.
func (g *gate) lost(hurry bool) {
	g.mu.Lock()
	g.has = false
	g.mu.Unlock()
	if hurry {
		g.shut(result{StatusNotAcquired, "the term was lost before the command could be started"})
	}
}

// giveUp ends the candidacy unless the Lease is acquired.
func (g *gate) giveUp(why result) {
	g.mu.Lock()
	has := g.has
	g.mu.Unlock()
	if !has {
		g.shut(why)
	}
}

// shut ends the candidacy unless the command has started.
func (g *gate) shut(why result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started || g.closed != nil {
		return
	}
	g.closed = &why
	g.stop()
}

// start says whether the command may start. From then on signals are its own.
func (g *gate) start() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		return false
	}
	g.started = true
	return true
}

// end ends the candidacy: the command has run.
func (g *gate) end() { g.stop() }

// why is why the candidacy ended before the command started, nil if it did not.
func (g *gate) why() *result {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// close ends what the gate has running.
func (g *gate) close() {
	g.stopWaiting()
	g.stop()
	signal.Stop(g.caught)
	close(g.caught)
}
