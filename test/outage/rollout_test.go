package outage

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
	"github.com/fencedlease/fencedlease/test/traffic"
)

// TestReplicasComeAndGo: two replicas behind one address, under load. The API server
// talks HTTP/2 to a webhook at a URL, and keeps a single connection for all calls under
// way. HTTP/1.1, with a connection for each, is how it talks to a Service: test/e2e.
func TestReplicasComeAndGo(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("rolling restart", func(t *testing.T) { rollingRestart(suite.In(t, c), c) })
	t.Run("rolling restart without a delay", func(t *testing.T) { withoutDelay(suite.In(t, c), c) })
	t.Run("killed", func(t *testing.T) { killed(suite.In(t, c), c) })
}

// rollingRestart: each replica is restarted in turn, twice, and nothing is lost.
func rollingRestart(w *suite.World, c *cluster.Cluster) {
	// Shorter than the default, and longer than new connections take to follow.
	b := replicas(w, c, "--shutdown-delay=3s")
	load, stop := traffic.Send(w)
	restart(w, b, 2)
	stop()
	w.T.Logf("%s (%d connections)", load, b.taken.Load())
	if failed := load.Failed(); len(failed) > 0 {
		w.T.Errorf("%d requests failed", len(failed))
	}
	for _, replica := range b.replicas {
		said := replica.Log()
		if got := strings.Count(said, "draining: not ready any more"); got != 2 {
			w.T.Errorf("a replica says %d times that it drains, want 2", got)
		}
		if strings.Contains(said, "forbidden") {
			w.T.Errorf("a right is missing:\n%s", said)
		}
	}
}

// withoutDelay shows what the delay is for: whoever sends new connections to a
// replica that has ended already loses them. How many those are is a matter of luck.
func withoutDelay(w *suite.World, c *cluster.Cluster) {
	b := replicas(w, c, "--shutdown-delay=0s")
	load, stop := traffic.Send(w)
	restart(w, b, 2)
	stop()
	w.T.Logf("%s (%d connections)", load, b.taken.Load())
	for _, f := range load.Failed() {
		// What did arrive was answered: watches that end first refuse nothing.
		if apierrors.ReasonForError(f.Err) != metav1.StatusReasonInternalError {
			w.T.Errorf("refused while the replica ended: %v", f.Err)
		}
	}
	if len(load.Failed()) == 0 {
		w.T.Log("nothing was lost, by luck: no new connection was led to a replica that had ended")
	}
}

// killed: a crash loses what is under way in that replica, and what is led to it
// until others see that it is gone; nothing after that.
func killed(w *suite.World, c *cluster.Cluster) {
	b := replicas(w, c, "--shutdown-delay=0s")
	load, stop := traffic.Send(w)
	time.Sleep(2 * time.Second) // of load
	if failed := load.Failed(); len(failed) > 0 {
		w.T.Errorf("before: %s", load)
	}
	at, victim := time.Now(), b.busiest()
	w.Must(victim.Kill())
	w.Eventually("no new connection is led to it", func() error {
		if b.serves(victim) {
			return errors.New("it still is")
		}
		return nil
	})
	gone := time.Now()
	time.Sleep(2 * time.Second) // of load
	stop()
	w.T.Logf("%s; new connections were led to it for another %s", load, gone.Sub(at).Round(time.Millisecond))
	for _, f := range load.Failed() {
		// A request that came while it was led there may end a little later.
		if f.At.Sub(gone) > time.Second {
			w.T.Errorf("failed %s after the crash was known: %v", f.At.Sub(gone).Round(time.Millisecond), f.Err)
		}
	}
}

// replicas starts two managers behind the address that the API server calls, and
// ends them with the test.
func replicas(w *suite.World, c *cluster.Cluster, args ...string) *balancer {
	w.T.Helper()
	var managers []*cluster.Manager
	for range 2 {
		manager, err := c.StartManager(w.Ctx, cluster.ManagerOptions{OwnPort: true, NotInForce: true, ExtraArgs: args})
		w.Must(err)
		w.T.Cleanup(func() {
			select {
			case <-manager.Done():
			default:
				w.Must(manager.Stop(w.Ctx)) // so that the next one may lead at once
			}
			if said := manager.Log(); strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic") {
				w.T.Errorf("the manager's log:\n%s", said)
			}
		})
		managers = append(managers, manager)
	}
	b := balance(w, c, managers)
	for _, manager := range managers {
		awaitServing(w, b, manager)
	}
	w.Must(c.AwaitWebhooks(w.Ctx))
	return b
}

// restart restarts one replica after the other, so many times, as a Deployment does:
// the next one goes when the one before is ready.
func restart(w *suite.World, b *balancer, times int) {
	w.T.Helper()
	time.Sleep(time.Second) // of load
	for range times {
		for _, replica := range b.replicas {
			w.Must(replica.Stop(w.Ctx)) // SIGTERM, and waits for its end
			w.Must(replica.Restart(w.Ctx))
			awaitServing(w, b, replica)
		}
	}
	time.Sleep(time.Second) // of load
}

func awaitServing(w *suite.World, b *balancer, replica *cluster.Manager) {
	w.T.Helper()
	w.Eventually("new connections are led to the replica", func() error {
		if !b.serves(replica) {
			return errors.New("they are not")
		}
		return nil
	})
}
