package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// The cluster and the manager of the package under test.
var (
	Cluster *cluster.Cluster
	Manager *cluster.Manager
)

// startTimeout bounds the start of a cluster with FencedLease installed.
const startTimeout = 5 * time.Minute

// Main runs the tests of a package with FencedLease installed in a cluster of
// their own. A data race in the manager fails the run.
func Main(m *testing.M, options cluster.Options, patches ...cluster.Patch) {
	code, err := run(m, options, patches)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, options cluster.Options, patches []cluster.Patch) (code int, err error) {
	log.SetLogger(logr.Discard()) // what matters is in errors, and in the manager's log
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if Cluster, err = cluster.Start(ctx, options); err != nil {
		return 1, fmt.Errorf("the control plane did not start: %w", err)
	}
	defer func() { err = errors.Join(err, Cluster.Stop()) }()
	if err := Cluster.Install(ctx, patches...); err != nil {
		return 1, fmt.Errorf("FencedLease was not installed: %w", err)
	}
	if Manager, err = Cluster.StartManager(ctx, cluster.ManagerOptions{}); err != nil {
		return 1, fmt.Errorf("the manager did not start: %w", err)
	}
	code = m.Run()
	said := Manager.Log()
	if i := strings.Index(said, "WARNING: DATA RACE"); i >= 0 {
		return 1, errors.New("the manager has a data race:\n" + said[i:min(len(said), i+4000)])
	}
	if i := strings.Index(said, "panic"); i >= 0 {
		return 1, errors.New("the manager panicked:\n" + said[i:min(len(said), i+4000)])
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the end of the manager's log:\n%s\n", said[max(0, len(said)-4000):])
	}
	return code, nil
}
