package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// initCommand makes this program the first process of a container.
const initCommand = "container-init"

// The file descriptors of the child, beside the usual ones.
const (
	ordersFile  = 3
	failureFile = 4
)

// containerSetup is what the child is told.
type containerSetup struct {
	RootFS       string // the directory of the image
	Scratch      string // an empty directory, to mount on
	ReadOnly     bool
	Hostname     string
	Mounts       []mount
	User, Group  int
	Groups       []int
	Capabilities []uintptr // the most that the container can have
	NoNewPrivs   bool
	Command      []string
	Env          []string
	Dir          string
}

// mount is a file or directory of the node in a container.
type mount struct {
	Source, Target string
	ReadOnly       bool
}

// devices are those that every container has.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// becomeContainer arranges the namespaces of the container, and becomes its program.
func becomeContainer() {
	runtime.LockOSThread() // capabilities and such are a thread's; the one that remains is this
	failure := os.NewFile(failureFile, "failure")
	unix.CloseOnExec(ordersFile)
	unix.CloseOnExec(failureFile)
	var setup containerSetup
	err := json.NewDecoder(os.NewFile(ordersFile, "orders")).Decode(&setup)
	if err == nil {
		err = setup.become()
	}
	_, _ = fmt.Fprint(failure, err)
	os.Exit(128)
}

// become returns only if something went wrong.
func (s *containerSetup) become() error {
	unix.Umask(0)
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := s.mountRoot(); err != nil {
		return err
	}
	if err := s.mountAll(); err != nil {
		return err
	}
	if s.ReadOnly {
		if err := remountReadOnly("/"); err != nil {
			return err
		}
	}
	unix.Umask(0o022)
	if err := os.Chdir(s.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	program, err := s.lookUp()
	if err != nil {
		return err
	}
	if err := s.dropPrivileges(); err != nil {
		return err
	}
	if err := dieWithAgent(); err != nil {
		return err
	}
	return fmt.Errorf("run %s: %w", program, unix.Exec(program, s.Command, s.Env))
}

// mountRoot makes the root file system: what is written over the image is memory, and
// goes with the mount namespace.
func (s *containerSetup) mountRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", s.Scratch, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	// Relative names, since colons and commas have a meaning in these options.
	upper, work, root := s.Scratch+"/upper", s.Scratch+"/work", s.Scratch+"/root"
	for _, dir := range []string{upper, work, root} {
		if err := os.Mkdir(dir, openDir); err != nil {
			return err
		}
	}
	if err := os.Chdir(s.RootFS); err != nil {
		return err
	}
	options := "lowerdir=.,upperdir=" + upper + ",workdir=" + work
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount the image's file system: %w", err)
	}
	return nil
}

// mountAll mounts volumes and devices, and makes the root the only one. The sources
// are opened before, and the targets looked up after that: an image's links lead
// nowhere else.
func (s *containerSetup) mountAll() error {
	mounts := s.Mounts
	for _, name := range devices {
		mounts = append(mounts, mount{Source: "/dev/" + name, Target: "/dev/" + name})
	}
	sources := make([]int, len(mounts))
	for i, m := range mounts {
		var err error
		if sources[i], err = unix.Open(m.Source, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("open %s: %w", m.Source, err)
		}
		defer func() { _ = unix.Close(sources[i]) }()
	}
	if err := errors.Join(unix.Chroot(s.Scratch+"/root"), os.Chdir("/")); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	for _, dir := range []string{"/proc", "/dev", s.Dir} {
		if err := os.MkdirAll(dir, openDir); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for i, m := range mounts {
		if err := m.bind(sources[i]); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	return os.Symlink("/proc/self/fd", "/dev/fd")
}

// bind mounts a source that was opened.
func (m mount) bind(source int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(source, &stat); err != nil {
		return err
	}
	dir, file := m.Target, ""
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		dir, file = filepath.Dir(m.Target), m.Target
	}
	if err := os.MkdirAll(dir, openDir); err != nil {
		return err
	}
	if file != "" {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_RDONLY, openFile)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(source), m.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if m.ReadOnly {
		return remountReadOnly(m.Target)
	}
	return nil
}

func remountReadOnly(target string) error {
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

// lookUp finds the program by the PATH of the container.
func (s *containerSetup) lookUp() (string, error) {
	os.Clearenv()
	for _, variable := range s.Env {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			if err := os.Setenv("PATH", path); err != nil {
				return "", err
			}
		}
	}
	return exec.LookPath(s.Command[0])
}

// dropPrivileges makes the process the container's user.
func (s *containerSetup) dropPrivileges() error {
	keep := map[uintptr]bool{}
	for _, capability := range s.Capabilities {
		keep[capability] = true
	}
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if keep[capability] {
			continue
		}
		// A kernel that does not know it does not have it to give.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	if err := syscall.Setgroups(s.Groups); err != nil {
		return fmt.Errorf("set the supplementary groups: %w", err)
	}
	if err := syscall.Setgid(s.Group); err != nil {
		return fmt.Errorf("become group %d: %w", s.Group, err)
	}
	if err := syscall.Setuid(s.User); err != nil {
		return fmt.Errorf("become user %d: %w", s.User, err)
	}
	if s.NoNewPrivs {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("set no_new_privs: %w", err)
		}
	}
	return nil
}

// dieWithAgent asks for the parent-death signal once more, since it does not survive a
// change of the user, and makes sure that it did not come in between.
func dieWithAgent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set the parent-death signal: %w", err)
	}
	poll := []unix.PollFd{{Fd: ordersFile}}
	if _, err := unix.Poll(poll, 0); err != nil {
		return fmt.Errorf("look for the agent: %w", err)
	}
	if poll[0].Revents&unix.POLLHUP != 0 {
		return errors.New("the agent is gone")
	}
	return nil
}
