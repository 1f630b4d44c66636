package main

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

const pollInterval = 50 * time.Millisecond

// errLocked says that another process has the lock.
var errLocked = errors.New("locked by another process")

// lock locks a file until it is closed or this process ends, however it ends.
// Unlike a process id in a file, a lock never outlives its owner.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, exclusive())
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// lockPatiently is lock that waits for its turn.
func lockPatiently(ctx context.Context, path string) (*os.File, error) {
	for {
		file, err := lock(path)
		if !errors.Is(err, errLocked) {
			return file, err
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// owner is the id of the process that has locked a file, 0 if none has. The
// kernel knows it, so nobody else can be taken for it.
func owner(path string) (int, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	found := exclusive()
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, found); err != nil {
		return 0, err
	}
	if found.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(found.Pid), nil
}

// exclusive is a lock on the whole of a file.
func exclusive() *syscall.Flock_t {
	return &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
}

// pause waits a moment, or returns why not.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pollInterval):
		return nil
	}
}
