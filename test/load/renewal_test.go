package load

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fencedlease/fencedlease/test/suite"
)

const renewalsPerLease = 1250 // by eight holders: 10,000

// TestTenThousandRenewals: no renewal comes to a webhook, whoever the holder is
// and whether client-go's leader election or its lock alone makes it.
func TestTenThousandRenewals(t *testing.T) {
	w := suite.New(t)
	type renewer struct {
		who   *suite.Actor
		renew func(context.Context, *holder) error
	}
	renewers := map[string]renewer{}
	for name, renew := range map[string]func(context.Context, *holder) error{"lock": renewByLock, "elector": renewByElector} {
		renewers["pod-"+name] = renewer{w.Pod("pod-" + name), renew}
		renewers["pod-two-"+name] = renewer{w.Pod("pod-two-" + name), renew}
		renewers["certificate-"+name] = renewer{w.User("certificate-" + name), renew}
		renewers["account-"+name] = renewer{w.ServiceAccount("account-" + name), renew}
	}

	ctx := klog.NewContext(w.Ctx, logr.Discard())
	beginning := make(chan struct{})
	begin := sync.OnceFunc(func() { close(beginning) })
	var holders []*holder
	var running sync.WaitGroup
	t.Cleanup(func() { // also where the test ends early
		begin()
		running.Wait()
	})
	for name, r := range renewers {
		w.FencedLease(name)
		h := newHolder(w, name, r.who, beginning)
		holders = append(holders, h)
		running.Go(func() {
			if err := r.renew(ctx, h); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for _, h := range holders {
		h.awaitAcquired(w)
	}
	mint, check := calls(w, "/mint"), calls(w, "/lease-check")
	if mint < len(holders) || check < len(holders) {
		t.Fatalf("%d Leases were acquired, but mint was called %d times and its check %d times", len(holders), mint, check)
	}

	began := time.Now()
	begin()
	running.Wait()
	renewals := 0
	for _, h := range holders {
		done := h.wire.seen(func(l leaseWrite) bool { return l.renews() && l.accepted() })
		writer := suite.Keys(w.Lease(h.name)).TokenHolder
		t.Logf("%d renewals by %s as %.24s…", done, h.name, writer)
		renewals += done
	}
	mintAfter, checkAfter := calls(w, "/mint"), calls(w, "/lease-check")
	t.Logf("%d renewals of %d Leases in %s: mint was called %d times, its check %d times", renewals, len(holders),
		time.Since(began).Round(time.Second), mintAfter-mint, checkAfter-check)
	if renewals != renewalsPerLease*len(holders) {
		t.Errorf("%d renewals, want %d", renewals, renewalsPerLease*len(holders))
	}
	if mintAfter != mint || checkAfter != check {
		t.Error("a renewal came to a webhook")
	}

	// And the counters do count.
	w.Pod("successor").Acquire(holders[0].name, "successor")
	awaitCalls(w, "/mint", mint+1)
	awaitCalls(w, "/lease-check", check+1)
}

// holder acquires a Lease, and renews it when it is told to begin.
type holder struct {
	name string // of its Lease and itself
	wire *wire
	lock *resourcelock.LeaseLock
	done context.CancelFunc // called when it renewed often enough; nil if it counts itself
}

// newHolder makes a holder whose renewals wait for the beginning.
func newHolder(w *suite.World, name string, who *suite.Actor, begin <-chan struct{}) *holder {
	w.T.Helper()
	h := &holder{name: name, wire: &wire{}}
	renewals := 0
	h.wire.before = func(l leaseWrite) {
		if l.renews() {
			<-begin
		}
	}
	h.wire.after = func(l leaseWrite) {
		if l.renews() && l.accepted() {
			if renewals++; renewals == renewalsPerLease && h.done != nil {
				h.done()
			}
		}
	}
	client, err := h.wire.client(who)
	w.Must(err)
	h.lock = leaseLock(w.Namespace, name, name, client)
	return h
}

// awaitAcquired waits until the API server's watch cache has the acquisition:
// until then it tries a renewal on the Lease before it first, where it would be
// one.
func (h *holder) awaitAcquired(w *suite.World) {
	w.T.Helper()
	client, err := kubernetes.NewForConfig(w.Admin.Config)
	w.Must(err)
	w.Eventually(h.name+" holds its Lease", func() error {
		cached, err := client.CoordinationV1().Leases(w.Namespace).Get(w.Ctx, h.name, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		if keys := suite.Keys(cached); keys.Token != "1" || keys.TokenFor != h.name {
			return fmt.Errorf("our keys on it are %+v", keys)
		}
		return nil
	})
}

// renewByLock renews by the lock of client-go alone, as fast as it can.
func renewByLock(ctx context.Context, h *holder) error {
	if _, _, err := h.lock.Get(ctx); err != nil {
		return err
	}
	now := metav1.Now()
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity: h.name, LeaseDurationSeconds: 60, AcquireTime: now, RenewTime: now, LeaderTransitions: 1,
	}
	for range 1 + renewalsPerLease {
		if err := h.lock.Update(ctx, record); err != nil {
			return err
		}
		record.RenewTime = metav1.Now()
	}
	return nil
}

// renewByElector renews by the leader election of client-go.
func renewByElector(ctx context.Context, h *holder) error {
	ctx, h.done = context.WithCancel(ctx)
	defer h.done()
	config := quick(h.lock)
	config.RetryPeriod = time.Millisecond
	elector, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}
