// Command demo shows on a real API server what FencedLease prevents: it tells the
// story of the paused leader twice, first without a guard, then with one. It
// fails unless the late writes are accepted in the first and refused in the
// second, and leaves nothing running.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// The cast.
const (
	namespace = "default"
	leaseName = "payments"
	account   = "account-99"
)

// deadline ends a demo that hangs.
const deadline = 5 * time.Minute

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		err = work(os.Args[2:])
	} else {
		err = demo(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(out io.Writer) (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	ctx, cancelDeadline := context.WithTimeout(ctx, deadline)
	defer cancelDeadline()

	c, err := cluster.Start(ctx, cluster.Options{Output: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := c.Install(ctx); err != nil {
		return err
	}
	if _, err := c.StartManager(ctx, cluster.ManagerOptions{}); err != nil {
		return err
	}
	s, err := newStage(c, out)
	if err != nil {
		return err
	}

	before, err := s.tell(ctx, withoutGuard)
	if err != nil {
		return err
	}
	now, err := s.tell(ctx, withGuard)
	if err != nil {
		return err
	}
	return s.compare(before, now)
}
