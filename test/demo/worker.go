package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// The timings of the election: shorter than client-go's defaults (15, 10 and
// 2 s), so that the story takes seconds. Their proportions are alike.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

// thinking is how long a worker works out a balance before it writes it: the
// moment in which it can be paused.
const thinking = 150 * time.Millisecond

// worker is an ordinary leader-elected program: while client-go says that it
// leads, it works out a balance and writes it. Where its Lease is fenced, it
// sends the token along that it finds there; that is all it knows of fencing.
type worker struct {
	name    string
	balance string
	writes  int // how often it writes in a term; no limit if 0
	client  kubernetes.Interface
	out     io.Writer
}

// work is the process that `demo worker` is.
func work(args []string) error {
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	name := flags.String("name", "", "identity in the election")
	balance := flags.String("balance", "", "the balance that it writes")
	writes := flags.Int("writes", 0, "how often it writes it in a term (0: as long as it leads)")
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.Timeout = renewDeadline
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	w := &worker{name: *name, balance: *balance, writes: *writes, client: client, out: os.Stdout}
	return w.elect(ctx)
}

// elect takes part in the election until ctx ends: stock client-go.
func (w *worker) elect(ctx context.Context) error {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
			Client:     w.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: w.name},
		},
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: w.lead,
			OnStoppedLeading: func() { w.say(saidStopped, "") },
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

// lead writes balances while client-go says that this process leads. The check
// and the write are two steps, as in every such program: a pause fits between.
func (w *worker) lead(ctx context.Context) {
	token, err := w.token(ctx)
	if err != nil {
		w.say(saidFailed, err.Error())
		return
	}
	w.say(saidLeads, token)
	for n := 0; ctx.Err() == nil && (w.writes == 0 || n < w.writes); n++ {
		w.say(saidThinks, w.balance)
		time.Sleep(thinking)
		w.write(ctx, w.balance, token)
	}
}

// token is the one on the Lease, if it was minted for this process.
func (w *worker) token(ctx context.Context) (string, error) {
	lease, err := w.client.CoordinationV1().Leases(namespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || lease.Annotations[v1alpha1.AnnotationTokenFor] != w.name {
		return "", err
	}
	return lease.Annotations[v1alpha1.AnnotationToken], nil
}

// write sends a balance that was worked out: it goes out even if the term ended
// meanwhile, as a request that is on its way does.
func (w *worker) write(ctx context.Context, balance, token string) {
	object := map[string]any{"data": map[string]string{"balance": balance}}
	if token != "" {
		object["metadata"] = map[string]any{"annotations": map[string]string{v1alpha1.AnnotationToken: token}}
	}
	patch, err := json.Marshal(object)
	if err != nil {
		w.say(saidFailed, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewDeadline)
	defer cancel()
	_, err = w.client.CoreV1().ConfigMaps(namespace).Patch(ctx, account, types.MergePatchType, patch, metav1.PatchOptions{})
	var status apierrors.APIStatus
	switch {
	case err == nil:
		w.say(saidWrote, balance)
	case errors.As(err, &status):
		w.say(saidRefused, fmt.Sprintf("%d %s: %s", status.Status().Code, status.Status().Reason, status.Status().Message))
	default:
		w.say(saidFailed, err.Error())
	}
}

// What a worker says, a line each, for the one who watches it.
const (
	saidLeads   = "leads"
	saidThinks  = "thinks"
	saidWrote   = "wrote"
	saidRefused = "refused"
	saidFailed  = "failed"
	saidStopped = "stopped"
)

func (w *worker) say(what, more string) {
	_, _ = fmt.Fprintf(w.out, "%s %s\n", what, strings.ReplaceAll(more, "\n", " "))
}
