package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/cluster/process"
)

const (
	// startTimeout bounds how long a server takes until it answers.
	startTimeout = 30 * time.Second

	// stopGrace is how long it may take to end.
	stopGrace = 10 * time.Second
)

// Server is a database that runs.
type Server struct {
	// Dir holds its data, its log and its socket.
	Dir string

	// Port is where it listens, on 127.0.0.1.
	Port int

	log     string
	user    *syscall.Credential
	process *process.Process
	reaper  *process.Reaper
	stop    syscall.Signal // asks it to end without waiting for its clients
}

// Address is host:port.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// prepare makes the directory of a server.
func prepare(ctx context.Context, name string) (*Server, error) {
	dir, err := os.MkdirTemp("", "fencedlease-"+name+"-")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, log: filepath.Join(dir, "server.log"), stop: syscall.SIGTERM}
	if s.user, err = unprivileged(); err == nil && s.user != nil {
		err = os.Chown(dir, int(s.user.Uid), int(s.user.Gid))
	}
	if err == nil {
		s.Port, err = cluster.FreePort(ctx)
	}
	if err == nil {
		s.reaper, err = process.Reap(dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// unprivileged is whom servers run as if this process is root's: PostgreSQL insists.
// Else nil.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// program finds a program where Debian puts it outside of the PATH, in which it has
// wrappers of some, and then in the PATH.
func program(name string) (string, error) {
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/", "/usr/sbin/"} {
		if found, _ := filepath.Glob(pattern + name); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no %s: `make postgresql mariadb` installs it", name)
	}
	return filepath.EvalSymlinks(path)
}

// run runs a program that prepares something, to its end.
func (s *Server) run(ctx context.Context, name string, args ...string) error {
	path, err := program(name)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, path, args...)
	command.Dir = s.Dir
	command.Env = append(os.Environ(), "HOME="+s.Dir, "TMPDIR="+s.Dir)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.user}
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// start starts the server itself, and waits until it answers.
func (s *Server) start(ctx context.Context, driver, dsn, name string, args ...string) error {
	path, err := program(name)
	if err != nil {
		return err
	}
	if s.process, err = process.StartAs(s.user, s.Dir, name, path, s.log, args...); err != nil {
		return err
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.process.Done():
			return fmt.Errorf("%s ended:\n%s", name, process.Tail(s.log, 20))
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w\n%s", name, err, process.Tail(s.log, 20))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the server, and deletes its directory.
func (s *Server) Stop() error {
	var err error
	if s.process != nil {
		err = errors.Join(s.process.Signal(s.stop), s.process.Stop(stopGrace))
	}
	return errors.Join(err, s.reaper.Release(), os.RemoveAll(s.Dir))
}
