package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killTimeout is how long a process may take to disappear after SIGKILL.
const killTimeout = 10 * time.Second

// Shim writes a script dir/name that records its process id and the program in
// dir/name.pid and then becomes the program at path. It serves where a library
// starts the process and shows nobody its id.
func Shim(dir, name, path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	shim := filepath.Join(dir, name)
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' $$ %[1]s >%[2]s\nexec %[1]s \"$@\"\n", quote(path), quote(shim+".pid"))
	return shim, os.WriteFile(shim, []byte(script), 0o700)
}

// quote makes one word of the shell of a string.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// StopOrphans kills the processes that the pid files in dir name and that are
// still running, and returns their names. They are what an owner left behind
// that was killed together with its [Reaper].
func StopOrphans(dir string) (stopped []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		pid, ok := find(dir, file)
		if !ok {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".pid")
		if killErr := kill(dir, file, pid); killErr != nil {
			err = errors.Join(err, fmt.Errorf("stop %s, process %d: %w", name, pid, killErr))
			continue
		}
		stopped = append(stopped, name)
	}
	return stopped, err
}

// find returns the id of the process that a pid file in dir names, if it is
// running. Ids are used again: it is only ours if it runs the recorded program
// and its command line mentions the directory.
func find(dir, file string) (pid int, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	id, program, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n")
	pid, err = strconv.Atoi(id)
	if err != nil || pid <= 1 {
		return 0, false
	}
	exe, err := os.Readlink("/proc/" + id + "/exe")
	// A program that was built anew since shows as deleted.
	if err != nil || strings.TrimSuffix(exe, " (deleted)") != program {
		return 0, false
	}
	cmdline, err := os.ReadFile("/proc/" + id + "/cmdline")
	if err != nil || !bytes.Contains(cmdline, []byte(dir+"/")) {
		return 0, false
	}
	return pid, true
}

// kill ends a process that find found, and waits until it is gone.
func kill(dir, file string, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	for deadline := time.Now().Add(killTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, running := find(dir, file); !running {
			return nil
		}
	}
	return fmt.Errorf("still there %s after SIGKILL", killTimeout)
}
