package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// tally counts one kind of work.
type tally struct {
	mu            sync.Mutex
	done, refused int
	slowest       time.Duration // done or not
}

// String is the number of pieces done, and how it went.
func (t *tally) String() string {
	return fmt.Sprintf("%d (%d, %s)", t.done, t.refused, t.slowest.Round(10*time.Millisecond))
}

// add counts a piece that came to an end. One that did only because the time was
// up counts for nothing.
func (t *tally) add(took time.Duration, err error, timeIsUp bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slowest = max(t.slowest, took)
	switch {
	case err == nil:
		t.done++
	case !timeIsUp:
		t.refused++
	}
}

// piece is one piece of work; n counts them.
type piece func(ctx context.Context, n int) error

type workers struct{ sync.WaitGroup }

// work does piece after piece until the time is up.
func (w *workers) work(ctx context.Context, count *tally, do piece) {
	w.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			began := time.Now()
			err := do(ctx, n)
			count.add(time.Since(began), err, ctx.Err() != nil)
		}
	})
}

// floodingWriters write each to a guarded object of its own, under one
// FencedLease, as service accounts.
func floodingWriters(w *suite.World) []piece {
	w.T.Helper()
	w.FencedLease("busy")
	token := w.Pod("leader").Acquire("busy", "leader")
	var writers []piece
	for i := range floodWriters {
		name := fmt.Sprintf("object-%d", i)
		w.Guarded(name, "busy", token)
		writer := w.ServiceAccount(fmt.Sprintf("writer-%d", i%floodAccounts))
		writers = append(writers, func(ctx context.Context, n int) error {
			return patch(ctx, writer, w.Key(name), fmt.Sprintf(
				`{"metadata":{"annotations":{%q:"%s/%d"}},"data":{"balance":"%d"}}`, v1alpha1.AnnotationWrite, token, n, n))
		})
	}
	return writers
}

// plainWriter writes an object that nobody guards.
func plainWriter(w *suite.World) piece {
	w.T.Helper()
	w.Must(w.Admin.Create(w.Ctx, w.ConfigMap("plain")))
	writer := w.ServiceAccount("writer")
	return func(ctx context.Context, n int) error {
		return patch(ctx, writer, w.Key("plain"), fmt.Sprintf(`{"data":{"balance":"%d"}}`, n))
	}
}

// handOverUntilInStatus acquires a Lease, and waits until the controller has put
// the token into the status. The requests of the administrator itself never wait
// for a seat: what takes time is the operator.
func handOverUntilInStatus(w *suite.World) piece {
	w.T.Helper()
	w.FencedLease("third")
	return func(ctx context.Context, n int) error {
		lease := &coordinationv1.Lease{}
		if err := w.Admin.Get(ctx, w.Key("third"), lease); err != nil {
			return err
		}
		suite.Take(lease, fmt.Sprintf("holder-%d", n))
		if err := w.Admin.Update(ctx, lease); err != nil {
			return err
		}
		token := int64(suite.Keys(lease).CurrentToken())
		for {
			fl := &v1alpha1.FencedLease{}
			if err := w.Admin.Get(ctx, w.Key("third"), fl); err != nil {
				return err
			}
			if fl.Status.Token >= token {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

func patch(ctx context.Context, as client.Client, key types.NamespacedName, change string) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return as.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(change)))
}
