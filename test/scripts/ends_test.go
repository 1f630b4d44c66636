package scripts

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAsked: Ctrl-C and SIGTERM are the command's to see to. It may still write, and
// the Lease is free at once.
func TestAsked(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			w, ann := story(t)
			run := ann.sh(fmt.Sprintf(`
				exec 2>log # the shell tells which of its children the signal ended
				trap 'sleep 5; kubectl patch configmap state -p "data: {balance: cleaned}"; exit 3' %s
				echo started
				while :; do sleep 0.1; done`, name))
			run.prints("started")
			run.signal(signal)
			run.exits(3)
			wantState(w, "1", "cleaned")
			released(w)
		})
	}
	t.Run("USR1", func(t *testing.T) {
		_, ann := story(t)
		run := ann.sh(`exec 2>log; trap 'echo told; exit 0' USR1; echo started; while :; do sleep 0.1; done`, "--grace-period=0s")
		run.prints("started")
		run.signal(syscall.SIGUSR1)
		if out := run.exits(0); !strings.HasSuffix(out, "told\n") {
			t.Errorf("it printed %q", out)
		}
	})
	t.Run("in vain", func(t *testing.T) {
		w, ann := story(t)
		run := ann.sh(`trap '' TERM; echo started; setsid sleep 100 & sleep 100`, "--grace-period=1s")
		run.prints("started")
		start := time.Now()
		run.signal(syscall.SIGTERM)
		run.exits(137, "did not end within 1s, and is killed")
		if took := time.Since(start); took < time.Second || took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		released(w)
	})
}

// runaways starts processes that want to stay.
const runaways = `
	trap '' TERM HUP INT
	sleep 1000 &
	setsid sleep 1001 &
	(setsid sh -c 'trap "" TERM; sleep 1002 & sleep 1003' &) &
	nohup sleep 1004 >/dev/null 2>&1 &
	sleep 0.5
	echo started
`

// TestLeftBehind: what the command leaves in the background does not outlive it.
func TestLeftBehind(t *testing.T) {
	w, ann := story(t)
	ann.sh(runaways + "exit 4").exits(4)
	released(w)
}

// waitGone waits until the command has no process left, and returns how long it took.
func (p *process) waitGone() time.Duration {
	p.t.Helper()
	start := time.Now()
	for left := p.children(); len(left) > 0; left = p.children() {
		if time.Since(start) > leaseDuration {
			p.t.Fatalf("processes are left: %v", left)
		}
	}
	return time.Since(start)
}

// TestOursGone: whatever becomes of our own processes, the command ends before
// anybody else could take the Lease.
func TestOursGone(t *testing.T) {
	start := func(t *testing.T) *process {
		t.Helper()
		_, ann := story(t)
		run := ann.sh(runaways + "while :; do sleep 0.1; done")
		run.prints("started")
		if children := run.children(); len(children) < 7 {
			t.Fatalf("%d processes", len(children))
		}
		return run
	}
	within := func(t *testing.T, took, limit time.Duration) {
		t.Helper()
		if took > limit {
			t.Errorf("the command's processes were there for another %s", took)
		}
		t.Logf("gone after %s", took.Round(time.Millisecond))
	}
	t.Run("run killed", func(t *testing.T) {
		run := start(t)
		run.signal(syscall.SIGKILL)
		within(t, run.waitGone(), renewDeadline-time.Second)
		<-run.done
		for run.keeper() != 0 {
			time.Sleep(10 * time.Millisecond)
		}
		run.host.clean()
	})
	t.Run("run stopped", func(t *testing.T) {
		run := start(t)
		run.signal(syscall.SIGSTOP)
		within(t, run.waitGone(), renewDeadline+time.Second)
		time.Sleep(time.Second) // longer than its deadline
		run.signal(syscall.SIGCONT)
		run.exits(76, "the command was killed: ")
	})
	t.Run("run stopped for a moment", func(t *testing.T) {
		run := start(t)
		run.signal(syscall.SIGSTOP)
		time.Sleep(renewDeadline / 3)
		run.signal(syscall.SIGCONT)
		time.Sleep(renewDeadline)
		if len(run.children()) < 7 {
			t.Error("the command was killed")
		}
		run.signal(syscall.SIGKILL)
		run.waitGone()
	})
	t.Run("keeper killed", func(t *testing.T) {
		run := start(t)
		_ = syscall.Kill(run.keeper(), syscall.SIGKILL)
		within(t, run.waitGone(), renewDeadline-time.Second)
		run.exits(137, "the process that watched over it is gone")
	})
	t.Run("keeper stopped", func(t *testing.T) {
		run := start(t)
		_ = syscall.Kill(run.keeper(), syscall.SIGSTOP)
		run.host.w.Admin.Acquire("payments", "thief")
		within(t, run.waitGone(), renewDeadline)
		run.exits(76, "the command was killed: the term with token 1")
	})
	t.Run("both killed", func(t *testing.T) { // the command itself ends, at least
		_, ann := story(t)
		run := ann.sh("echo started; while :; do read line </dev/zero; done")
		run.prints("started")
		keeper := run.keeper()
		run.signal(syscall.SIGSTOP)
		_ = syscall.Kill(keeper, syscall.SIGKILL)
		within(t, run.waitGone(), renewDeadline-time.Second)
		run.signal(syscall.SIGKILL)
	})
}
