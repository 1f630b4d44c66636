// Package traffic is a load on guarded objects and their Leases, in which every answer
// that the protocol does not call for is counted as a failure.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// The load is an open loop: guarded writes at a fixed rate, however long the answers
// take, and hand-overs of the Leases that they are fenced by.
const (
	writesPerSecond    = 50
	handOversPerSecond = 5
	objectsPerLease    = 4

	requestLimit = 15 * time.Second // longer than any timeout on the way
)

// Traffic is what was sent, and what came of it.
type Traffic struct {
	w       *suite.World
	writer  *suite.Actor
	leases  []*fencedLease
	running sync.WaitGroup

	writes, admitted, stale, handOvers atomic.Int64

	mu       sync.Mutex
	failures []Failure
	slowest  time.Duration
}

// fencedLease is a Lease that is handed over and over, and what it guards.
type fencedLease struct {
	name string

	turn  sync.Mutex   // one hand-over at a time
	token atomic.Int64 // of the term
	asked atomic.Int64 // the highest token that an acquisition under way may get
}

// Failure is an answer that the protocol does not call for.
type Failure struct {
	At  time.Time
	Err error
}

// Send begins the load. It goes on until what is returned is called, which waits for
// the last answer.
func Send(w *suite.World) (*Traffic, func()) {
	w.T.Helper()
	// What is refused for the moment is a failure, not to be tried again unseen.
	l := &Traffic{w: w, writer: w.Pod("writer").Impatient()}
	for i := range handOversPerSecond {
		lease := &fencedLease{name: fmt.Sprintf("payments-%d", i)}
		w.FencedLease(lease.name)
		lease.asked.Store(1)
		lease.token.Store(int64(l.writer.Acquire(lease.name, "holder-1")))
		for n := range objectsPerLease {
			w.Guarded(lease.object(n), lease.name, fence.Token(lease.token.Load()))
		}
		l.leases = append(l.leases, lease)
	}
	ctx, cancel := context.WithCancel(w.Ctx)
	begin := time.Now()
	l.every(ctx, time.Second/writesPerSecond, l.write)
	l.every(ctx, time.Second/handOversPerSecond, l.handOver)
	return l, func() {
		seconds := time.Since(begin).Seconds()
		cancel()
		l.running.Wait()
		l.sound(seconds)
	}
}

// sound: there was as much load as there should have been, and much of it did
// something. No failures of nothing would prove nothing.
func (l *Traffic) sound(seconds float64) {
	l.w.T.Helper()
	writes, handOvers, admitted := float64(l.writes.Load()), float64(l.handOvers.Load()), float64(l.admitted.Load())
	if writes < 0.95*writesPerSecond*seconds-1 || handOvers < 0.95*handOversPerSecond*seconds-1 {
		l.w.T.Errorf("too little load in %.1f s: %s", seconds, l)
	}
	if admitted < 0.25*writes {
		l.w.T.Errorf("hardly any write was admitted: %s", l)
	}
}

func (f *fencedLease) object(n int) string { return fmt.Sprintf("%s-account-%d", f.name, n) }

// every starts one call after another, without waiting for any. What a busy machine
// kept from its time is made up for.
func (l *Traffic) every(ctx context.Context, period time.Duration, do func(n int)) {
	begin := time.Now()
	l.running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(begin.Add(time.Duration(n+1) * period))):
				l.running.Go(func() { do(n) })
			}
		}
	})
}

// write presents the token of the term on one of the objects.
func (l *Traffic) write(n int) {
	lease := l.leases[n%len(l.leases)]
	token := lease.token.Load()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.w.Namespace, Name: lease.object(n / len(l.leases) % objectsPerLease)}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d",%q:"%d/%d"}},"data":{"balance":"%d"}}`,
		v1alpha1.AnnotationToken, token, v1alpha1.AnnotationWrite, token, n, n)
	l.writes.Add(1)
	err := l.timed(func(ctx context.Context) error {
		return l.writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
	switch {
	case err == nil:
		l.admitted.Add(1)
	case isStale(err) && lease.asked.Load() > token: // as it should be: the next term began
		l.stale.Add(1)
	default:
		l.fail(fmt.Errorf("a write with token %d: %w", token, err))
	}
}

// handOver begins the next term of a Lease.
func (l *Traffic) handOver(n int) {
	lease := l.leases[n%len(l.leases)]
	lease.turn.Lock()
	defer lease.turn.Unlock()
	next := lease.asked.Add(1)
	patch := fmt.Sprintf(`{"spec":{"holderIdentity":"holder-%d","acquireTime":%q}}`, next, time.Now().UTC().Format(metav1.RFC3339Micro))
	updated := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.w.Namespace, Name: lease.name}}
	l.handOvers.Add(1)
	err := l.timed(func(ctx context.Context) error {
		return l.writer.Patch(ctx, updated, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
	if err != nil {
		l.fail(fmt.Errorf("hand-over %d: %w", next, err))
		if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown { // it was refused: the term goes on
			lease.asked.Store(lease.token.Load())
		}
		return
	}
	got := int64(suite.Keys(updated).CurrentToken())
	if got <= lease.token.Load() {
		l.fail(fmt.Errorf("a hand-over got token %d after %d", got, lease.token.Load()))
	}
	lease.asked.Store(got)
	lease.token.Store(got)
}

func (l *Traffic) timed(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.w.Ctx), requestLimit)
	defer cancel()
	begin := time.Now()
	err := do(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, time.Since(begin))
	return err
}

func (l *Traffic) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, Failure{At: time.Now(), Err: err})
}

// Failed are the failures so far.
func (l *Traffic) Failed() []Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.failures)
}

// String says the counts, and of the failures the kinds.
func (l *Traffic) String() string {
	failures := l.Failed()
	var text strings.Builder
	fmt.Fprintf(&text, "%d guarded writes (%d admitted, %d stale as they should be) and %d hand-overs: %d failed; the slowest answer took %s",
		l.writes.Load(), l.admitted.Load(), l.stale.Load(), l.handOvers.Load(), len(failures), l.slowest.Round(time.Millisecond))
	for i, f := range failures {
		if i == 5 {
			fmt.Fprintf(&text, "\n… and %d more", len(failures)-i)
			break
		}
		fmt.Fprintf(&text, "\n%s %v", f.At.Format("15:04:05.000"), f.Err)
	}
	return text.String()
}

// isStale says that the fence refused a write because its token is not current.
func isStale(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusPreconditionFailed &&
		status.Status().Reason == metav1.StatusReason(fence.ReasonStale)
}
