package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// start starts a process that runs until a signal, and mentions dir.
func start(t *testing.T, dir string) *Process {
	t.Helper()
	return startProgram(t, dir, "tail", "-f", filepath.Join(dir, "child.log"))
}

// startStubborn starts one that does not care about SIGTERM.
func startStubborn(t *testing.T, dir string) *Process {
	t.Helper()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, dir, "sh", "-c", `trap '' TERM; echo deaf; read -r _ <"$0"`, filepath.Join(dir, "fifo"))
	eventually(t, "the trap", func() bool {
		return strings.Contains(Tail(filepath.Join(dir, "child.log"), 1), "deaf")
	})
	return p
}

func startProgram(t *testing.T, dir, program string, args ...string) *Process {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(dir, "child", path, filepath.Join(dir, "child.log"), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	eventually(t, "the program to run", func() bool { return running(dir) })
	return p
}

func running(dir string) bool {
	_, ok := find(dir, filepath.Join(dir, "child.pid"))
	return ok
}

func ended(p *Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}

func TestStop(t *testing.T) {
	const soon = 100 * time.Millisecond
	cases := map[string]struct {
		start     func(*testing.T, string) *Process
		pause     bool
		grace     time.Duration
		wantError string
	}{
		"one that ends when asked":         {start: start, grace: time.Minute},
		"one that is paused":               {start: start, pause: true, grace: time.Minute},
		"one that does not listen":         {start: startStubborn, grace: soon, wantError: "was killed"},
		"one that is paused and won't end": {start: startStubborn, pause: true, grace: soon, wantError: "was killed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.start(t, t.TempDir())
			if tc.pause {
				if err := p.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			err := p.Stop(tc.grace)
			if !ended(p) {
				t.Error("it still runs")
			}
			if got := errorText(err); !strings.Contains(got, tc.wantError) || (tc.wantError == "" && got != "") {
				t.Errorf("error %q, want %q", got, tc.wantError)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestStopTellsHowAProcessFailed(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(dir, "child", "/bin/sh", filepath.Join(dir, "child.log"), "-c", "echo broken; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := p.Stop(time.Minute); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v, want exit status 3", err)
	}
	if err := p.Stop(time.Minute); err != nil {
		t.Errorf("once more: %v", err)
	}
	if got := Tail(filepath.Join(dir, "child.log"), 5); got != "  broken" {
		t.Errorf("log %q", got)
	}
}

func TestStopOrphans(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)

	stopped, err := StopOrphans(dir)
	if err != nil || !slices.Equal(stopped, []string{"child"}) {
		t.Fatalf("stopped %v, error %v", stopped, err)
	}
	<-p.Done()

	stopped, err = StopOrphans(dir)
	if err != nil || len(stopped) != 0 {
		t.Errorf("the second time: stopped %v, error %v", stopped, err)
	}
}

// An id in a pid file may belong to somebody else by now.
func TestStopOrphansSparesStrangers(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	id := strconv.Itoa(p.cmd.Process.Pid)
	program, err := os.Readlink("/proc/" + id + "/exe")
	if err != nil {
		t.Fatal(err)
	}

	elsewhere := t.TempDir()
	for name, content := range map[string]string{
		"other-program":   id + "\n/no/such/program\n",
		"other-directory": id + "\n" + program + "\n",
		"init":            "1\n" + program + "\n",
		"garbage":         "tail\n",
		"empty":           "",
	} {
		if err := os.WriteFile(filepath.Join(elsewhere, name+".pid"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if stopped, err := StopOrphans(elsewhere); err != nil || len(stopped) != 0 {
		t.Errorf("stopped %v, error %v", stopped, err)
	}
	if ended(p) {
		t.Error("a stranger was killed")
	}
}

func TestReaper(t *testing.T) {
	t.Run("the owner is gone", func(t *testing.T) {
		dir := t.TempDir()
		reaper, err := Reap(dir)
		if err != nil {
			t.Fatal(err)
		}
		p := startStubborn(t, dir)
		// This is all that a reaper sees of an owner's end.
		_ = reaper.owner.Close()
		eventually(t, "the child's end", func() bool { return ended(p) })
		_ = reaper.cmd.Wait()
	})

	t.Run("the owner lets it go", func(t *testing.T) {
		dir := t.TempDir()
		reaper, err := Reap(dir)
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, dir)
		if err := reaper.Release(); err != nil {
			t.Fatal(err)
		}
		if ended(p) || !running(dir) {
			t.Error("the child was killed")
		}
	})
}

// A paused process is stopped when Pause returns, and runs on when it is told to.
func TestPause(t *testing.T) {
	p := start(t, t.TempDir())
	stopped := func() bool {
		t.Helper()
		all, err := allStopped(p.cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if stopped() {
		t.Fatal("it is stopped already")
	}
	for range 100 {
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
		if !stopped() {
			t.Fatal("it is paused, and runs")
		}
		if err := p.Resume(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the process to run on", func() bool { return !stopped() })
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(); err == nil {
		t.Error("a process that has ended was paused")
	}
}
