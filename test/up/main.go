// Command up keeps a local control plane with FencedLease in it running, to try
// things by hand.
//
//	up start   start it in the background, and say what to try
//	up stop    stop it, and whatever an earlier one left behind
//	up run     run it in the foreground until Ctrl-C
//
// Its files are in bin/up of the repository: kubeconfig, manager.log, up.log (of
// the one in the background), and cluster/ with all the rest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/fencedlease/fencedlease/test/cluster"
)

func main() {
	if err := command(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

// command does what the command line says.
func command(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.Usage = func() {
		say(flags.Output(), "usage: up [-dir DIR] start|stop|run")
		flags.PrintDefaults()
	}
	dir := flags.String("dir", "", "where the files are (default bin/up of the repository)")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	commands := map[string]func(context.Context, place, io.Writer) error{"start": start, "stop": stop, "run": run}
	do, ok := commands[flags.Arg(0)]
	if !ok || flags.NArg() != 1 {
		flags.Usage()
		return errors.New("say one of start, stop and run")
	}

	at, err := newPlace(*dir)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return do(ctx, at, out)
}

// say prints a line for the user.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }

// place is the directory with everything that belongs to one control plane.
type place string

func newPlace(dir string) (place, error) {
	if dir == "" {
		root, err := cluster.Root()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "bin", "up")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return place(dir), os.MkdirAll(dir, 0o700)
}

func (p place) file(name string) string { return filepath.Join(string(p), name) }

func (p place) kubeconfig() string { return p.file("kubeconfig") }
func (p place) managerLog() string { return p.file("manager.log") }
func (p place) log() string        { return p.file("up.log") }
func (p place) cluster() string    { return p.file("cluster") }

// ready is a file that is there while the control plane is ready for use.
func (p place) ready() string { return p.file("ready") }

// running is the file that the running one has locked, with its process id.
func (p place) running() string { return p.file("up.pid") }

// turn is the file that start and stop lock, one after the other.
func (p place) turn() string { return p.file("turn.lock") }
