package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// run runs everything until ctx ends.
func run(ctx context.Context, at place, out io.Writer) (err error) {
	running, err := lock(at.running())
	if errors.Is(err, errLocked) {
		return errors.New("one runs already: `up stop` stops it")
	}
	if err != nil {
		return err
	}
	defer func() { _ = running.Close() }()
	if err = clean(at, out); err != nil {
		return err
	}

	c, err := cluster.Start(ctx, cluster.Options{Dir: at.cluster(), Output: out})
	if err != nil {
		return err
	}
	defer func() {
		say(out, "stopping")
		err = errors.Join(err, c.Stop(), sweep(at, out))
	}()
	if err = c.Kubeconfig(at.kubeconfig(), c.Admin); err != nil {
		return err
	}
	if err = c.Install(ctx); err != nil {
		return err
	}
	manager, err := c.StartManager(ctx, cluster.ManagerOptions{LogPath: at.managerLog()})
	if err != nil {
		return err
	}

	if err := printGuide(out, at); err != nil {
		return err
	}
	if err := os.WriteFile(at.ready(), nil, 0o600); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-manager.Done():
		// A cluster without its manager is worth a look, too.
		say(out, "the manager has ended; its log is %s", relative(at.managerLog()))
		<-ctx.Done()
	}
	return nil
}

// clean makes way for a new one. Only to be called by the owner of the place.
func clean(at place, out io.Writer) error {
	return errors.Join(sweep(at, out), os.RemoveAll(at.managerLog()), os.RemoveAll(at.cluster()))
}
