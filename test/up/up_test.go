package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// asUp makes this test binary the command itself.
const asUp = "FENCEDLEASE_TEST_AS_UP"

func TestMain(m *testing.M) {
	if os.Getenv(asUp) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// up runs the command and returns what it printed and its exit status.
func up(t *testing.T, dir string, args ...string) (printed string, status int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-dir", dir}, args...)...)
	command.Env = append(os.Environ(), asUp+"=yes")
	// A file rather than a pipe, which would stay open in the background.
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	command.Stdout, command.Stderr = output, output
	_ = command.Run()
	text, err := os.ReadFile(output.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text), command.ProcessState.ExitCode()
}

// wantUp runs the command and expects words in what it prints.
func wantUp(t *testing.T, dir, command string, wantStatus int, want ...string) {
	t.Helper()
	got, status := up(t, dir, command)
	if status != wantStatus {
		t.Fatalf("up %s: exit status %d, want %d\n%s", command, status, wantStatus, got)
	}
	for _, words := range want {
		if !strings.Contains(got, words) {
			t.Errorf("up %s does not say %q:\n%s", command, words, got)
		}
	}
}

func TestUp(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { up(t, dir, "stop") })

	wantUp(t, dir, "start", 0, "starting the manager", filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "manager.log"))
	wantUp(t, dir, "start", 0, "It runs already.", "Try it:")
	wantUp(t, dir, "run", 1, "one runs already")
	t.Run("the guide tells the truth", func(t *testing.T) { followGuide(t, dir) })

	daemon, err := owner(place(dir).running())
	if err != nil || daemon == 0 {
		t.Fatalf("owner %d, error %v", daemon, err)
	}
	// With its reaper, which would have cleaned up.
	for _, pid := range append(reapers(t, dir), daemon) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	wantUp(t, dir, "start", 0, "Stopped kube-apiserver, left running by an earlier one.", "Try it:")

	wantUp(t, dir, "stop", 0, "Stopped.")
	wantUp(t, dir, "stop", 0, "It is not running.")
	if left := mentions(t, dir); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

func TestUpThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", "/no/such/assets")
	wantUp(t, dir, "start", 1, "/no/such/assets", "`make control-plane` builds it", "it ended before it was ready")
	if left := mentions(t, dir); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

func TestUsage(t *testing.T) {
	wantUp(t, t.TempDir(), "fly", 1, "usage: up", "say one of start, stop and run")
}

// followGuide does what the guide says. All of it works but the last, late write.
func followGuide(t *testing.T, dir string) {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := cluster.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range guide {
		command := exec.CommandContext(t.Context(), "/bin/sh", "-ec", step.run)
		command.Dir = root
		command.Env = append(os.Environ(), "HOME="+t.TempDir(),
			"KUBECONFIG="+place(dir).kubeconfig(),
			fmt.Sprintf("PATH=%s:%s", filepath.Dir(kubectl), os.Getenv("PATH")))
		output, err := command.CombinedOutput()
		late := i == len(guide)-1
		if (err != nil) != late {
			t.Fatalf("%s\n%s\n%s%v", step.say, step.run, output, err)
		}
		if late && !bytes.Contains(output, []byte("FencingTokenStale")) {
			t.Errorf("%s\n%s", step.say, output)
		}
	}
}

// mentions are the processes whose command lines mention dir.
func mentions(t *testing.T, dir string) map[int]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, file := range files {
		cmdline, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(cmdline, []byte(dir)) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/cmdline", &pid); err != nil {
			t.Fatal(err)
		}
		found[pid] = string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '}))
	}
	return found
}

func reapers(t *testing.T, dir string) (pids []int) {
	t.Helper()
	for pid, cmdline := range mentions(t, dir) {
		if strings.HasPrefix(cmdline, "/bin/sh -c") {
			pids = append(pids, pid)
		}
	}
	return pids
}
