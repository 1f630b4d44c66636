package leadership

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fencedlease/fencedlease/test/cluster/process"
	"github.com/fencedlease/fencedlease/test/suite"
)

// actor is a worker process, and the test that watches it.
type actor struct {
	w       *suite.World
	name    string
	process *process.Process
	log     string
}

// happening is a line of a worker's diary.
type happening struct {
	at         time.Time
	what, more string
}

// start starts a worker of a kind, in a Pod of its own. It is killed with the test.
func start(w *suite.World, kind, name string) *actor {
	w.T.Helper()
	a, err := tryStart(w, kind, name)
	w.Must(err)
	w.T.Cleanup(func() { w.Must(a.process.Kill()) })
	return a
}

// tryStart starts a worker for a caller who ends it.
func tryStart(w *suite.World, kind, name string) (*actor, error) {
	config, err := suite.Cluster.PodConfig(w.Ctx, w.Namespace, "worker", name)
	if err != nil {
		return nil, err
	}
	id := w.Namespace + "-" + name
	path := func(suffix string) string { return filepath.Join(suite.Cluster.Dir, id+suffix) }
	if err := suite.Cluster.Kubeconfig(path(".kubeconfig"), config); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &actor{w: w, name: name, log: path(".log")}
	a.process, err = process.Start(suite.Cluster.Dir, id, self, a.log, workerCommand,
		"-kind="+kind, "-name="+name, "-namespace="+w.Namespace, "-kubeconfig="+path(".kubeconfig"))
	return a, err
}

func (a *actor) signal(s syscall.Signal) {
	a.w.T.Helper()
	a.w.Must(a.process.Signal(s))
}

// diary is what the worker has noted so far.
func (a *actor) diary() ([]happening, error) {
	data, err := os.ReadFile(a.log)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(data, []byte("DATA RACE")) || bytes.Contains(data, []byte("panic:")) {
		return nil, fmt.Errorf("worker %s:\n%s", a.name, process.Tail(a.log, 60))
	}
	whole := string(data[:bytes.LastIndexByte(data, '\n')+1])
	var all []happening
	for line := range strings.Lines(whole) {
		at, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		micros, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("worker %s:\n%s", a.name, process.Tail(a.log, 20))
		}
		what, more, _ := strings.Cut(rest, " ")
		if what == failed {
			return nil, fmt.Errorf("worker %s: %s", a.name, line)
		}
		all = append(all, happening{time.UnixMicro(micros), what, more})
	}
	return all, nil
}

// noted are the worker's notes of one kind since a moment.
func (a *actor) noted(what string, since time.Time) []happening {
	a.w.T.Helper()
	all, err := a.diary()
	a.w.Must(err)
	return of(all, what, since)
}

func of(all []happening, what string, since time.Time) []happening {
	var found []happening
	for _, h := range all {
		if h.what == what && !h.at.Before(since) {
			found = append(found, h)
		}
	}
	return found
}

// await waits for the worker's first note of a kind since a moment.
func (a *actor) await(what string, since time.Time) happening {
	a.w.T.Helper()
	var found []happening
	a.w.Eventually(fmt.Sprintf("%s %s", a.name, what), func() error {
		if found = a.noted(what, since); len(found) == 0 {
			return fmt.Errorf("the end of its diary:\n%s", process.Tail(a.log, 5))
		}
		return nil
	})
	return found[0]
}
