package leadership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fencedlease/fencedlease/leader"
)

const (
	account     = "account-99"
	writePeriod = 100 * time.Millisecond

	// insistence is how long a worker goes on writing after its work was cancelled,
	// as a program does that checks nothing.
	insistence = 2 * time.Second
)

// stock is a worker with the leader election of client-go and its timings. It writes
// while the context is alive that client-go gives it.
func (w *worker) stock(ctx context.Context) error {
	sent := &sends{}
	client, err := kubernetes.NewForConfig(sent.counting(w.config))
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: w.namespace, Name: leaseName},
			Client:     kubernetes.NewForConfigOrDie(rest.AddUserAgent(w.config, "leader-election")).CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: w.name},
		},
		LeaseDuration: leader.DefaultLeaseDuration,
		RenewDeadline: leader.DefaultRenewDeadline,
		RetryPeriod:   leader.DefaultRetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { w.keepWriting(ctx, client, sent, 0) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	<-ctx.Done() // its diary is still to be read
	return nil
}

// fenced is a worker with fenced leadership, and nothing else that makes it safe.
func (w *worker) fenced(ctx context.Context) error {
	election, err := leader.New(w.config, leader.Options{Namespace: w.namespace, Name: leaseName, Identity: w.name})
	if err != nil {
		return err
	}
	sent := &sends{}
	client, err := kubernetes.NewForConfig(election.Config(sent.counting(w.config)))
	if err != nil {
		return err
	}
	return election.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		w.keepWriting(ctx, client, sent, insistence)
		return nil
	})
}

// keepWriting writes until ctx has been cancelled for so long.
func (w *worker) keepWriting(ctx context.Context, client kubernetes.Interface, sent *sends, insist time.Duration) {
	w.diary.note(leads, "")
	over := make(chan struct{})
	go func() {
		<-ctx.Done()
		w.diary.note(cancelled, context.Cause(ctx).Error())
		time.Sleep(insist)
		close(over)
	}()
	for n := 0; ; n++ {
		select {
		case <-over:
			w.diary.note(rests, "")
			return
		default:
		}
		w.write(ctx, client, sent, n)
		time.Sleep(writePeriod)
	}
}

// write writes once: a patch that knows nothing of fencing.
func (w *worker) write(ctx context.Context, client kubernetes.Interface, sent *sends, n int) {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"writer": w.name, "n": strconv.Itoa(n)}})
	if err != nil {
		w.diary.note(failed, err.Error())
		return
	}
	before := sent.n.Load()
	_, err = client.CoreV1().ConfigMaps(w.namespace).Patch(ctx, account, types.MergePatchType, patch, metav1.PatchOptions{})
	var status apierrors.APIStatus
	switch {
	case err == nil:
		w.diary.note(wrote, "")
	case errors.As(err, &status):
		w.diary.note(refused, fmt.Sprintf("%d %s: %s", status.Status().Code, status.Status().Reason, status.Status().Message))
	case isFenced(ctx, err) && sent.n.Load() == before:
		w.diary.note(stopped, err.Error())
	case isFenced(ctx, err), errors.Is(err, context.Canceled):
		w.diary.note(missed, err.Error())
	default:
		w.diary.note(failed, err.Error())
	}
}

// isFenced says whether a write came to nothing because its term is over. With a
// context that is over already, client-go does not get as far as our transport.
func isFenced(ctx context.Context, err error) bool {
	return leader.IsFenced(err) || errors.Is(err, context.Canceled) && leader.IsFenced(context.Cause(ctx))
}

// sends counts the requests that really leave the process.
type sends struct{ n atomic.Int64 }

func (s *sends) counting(config *rest.Config) *rest.Config {
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transportFunc(func(req *http.Request) (*http.Response, error) {
			s.n.Add(1)
			return next.RoundTrip(req)
		})
	})
	return counted
}

// transportFunc is a transport that is one function.
type transportFunc func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
