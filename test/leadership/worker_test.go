package leadership

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

const workerCommand = "worker"

// leaseName is that of the Lease, and of the FencedLease that wraps it.
const leaseName = "payments"

// worker is a candidate in a process of its own.
type worker struct {
	name      string // its identity
	namespace string
	config    *rest.Config
	diary     *diary
}

// workers are the kinds of worker, by the name of the flag -kind.
var workers = map[string]func(*worker, context.Context) error{
	"stock":   (*worker).stock,
	"leader":  (*worker).fenced,
	"manager": (*worker).manager,
}

// work is the process of a worker. It ends in good order on SIGTERM.
func work(args []string) error {
	flags := flag.NewFlagSet(workerCommand, flag.ContinueOnError)
	w := &worker{diary: &diary{out: os.Stdout}}
	kind := flags.String("kind", "", "what kind of candidate it is")
	flags.StringVar(&w.name, "name", "", "its identity in the election")
	flags.StringVar(&w.namespace, "namespace", "", "that of the Lease, and of its work")
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if w.config, err = clientcmd.BuildConfigFromFlags("", *kubeconfig); err != nil {
		return err
	}
	w.config.QPS = -1
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(klog.NewContext(context.Background(), logr.Discard()), syscall.SIGTERM)
	defer stop()
	run, ok := workers[*kind]
	if !ok {
		return fmt.Errorf("there is no such kind of worker: %q", *kind)
	}
	w.diary.note(competes, "")
	return run(w, ctx)
}

// What a worker notes in its diary.
const (
	competes  = "competes"  // it has started
	leads     = "leads"     // its work begins; with the token
	wrote     = "wrote"     // a write was accepted
	refused   = "refused"   // the API server refused one
	stopped   = "stopped"   // one was stopped in the process: it was not sent, or cut off
	missed    = "missed"    // one came to nothing for another reason that is no harm, a conflict for instance
	failed    = "failed"    // one failed as none should
	cancelled = "cancelled" // the context of its work ended; with the cause
	rests     = "rests"     // its work has ended
)

// diary is where a worker notes what happens, a line each.
type diary struct {
	mu  sync.Mutex
	out io.Writer
}

// note writes a line: the time in microseconds, what happens, and more about it.
func (d *diary) note(what, more string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintf(d.out, "%d %s %s\n", time.Now().UnixMicro(), what, strings.ReplaceAll(more, "\n", " "))
}
