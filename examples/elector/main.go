// Command elector is a program with client-go's own leader election, as it has been
// for years, that now sends its fencing token along. It uses nothing of FencedLease
// but two annotations: with the fence in place, that is enough to be safe.
//
// What it does not have is the sooner end of a term, the seal, and the local check
// that package leader adds: the API server refuses its late writes, but it makes them.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server (default: as a Pod does)")
	namespace := flag.String("namespace", "default", "where the Lease and the ConfigMap are")
	lease := flag.String("lease", "payments", "the Lease")
	account := flag.String("account", "account-99", "the guarded ConfigMap")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	w := &worker{
		clients:   kubernetes.NewForConfigOrDie(config),
		namespace: *namespace, lease: *lease, account: *account,
		identity: host + "_" + string(uuid.NewUUID()),
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: w.namespace, Name: w.lease},
			Client:     w.clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: w.identity},
		},
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: w.lead,
			OnStoppedLeading: func() { fmt.Println("leads no more") },
		},
	})
}

type worker struct {
	clients                             kubernetes.Interface
	namespace, lease, account, identity string
}

// lead counts up in the account while client-go says that this process leads.
func (w *worker) lead(ctx context.Context) {
	token, err := w.token(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("leads with token", token)
	for count := 1; ctx.Err() == nil; count++ {
		if err := w.write(ctx, token, count); err != nil {
			log.Fatal(err) // 412 FencingTokenStale: another leads
		}
		fmt.Println("wrote", count)
		time.Sleep(time.Second)
	}
}

// token is the one on the Lease. It counts only if it was handed out to this
// process, by a FencedLease that still exists.
func (w *worker) token(ctx context.Context) (string, error) {
	lease, err := w.clients.CoordinationV1().Leases(w.namespace).Get(ctx, w.lease, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if lease.Labels["fencedlease.io/retired"] != "" || lease.Annotations["fencedlease.io/token-for"] != w.identity {
		return "", fmt.Errorf("lease %s/%s has no token for this process", w.namespace, w.lease)
	}
	return lease.Annotations["fencedlease.io/token"], nil
}

// write presents the token with each write: as the object's token, and in a nonce
// that differs each time.
func (w *worker) write(ctx context.Context, token string, count int) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{
			"fencedlease.io/token": token,
			"fencedlease.io/write": token + "/" + strconv.Itoa(count),
		}},
		"data": map[string]string{"count": strconv.Itoa(count)},
	})
	if err != nil {
		return err
	}
	_, err = w.clients.CoreV1().ConfigMaps(w.namespace).Patch(ctx, w.account, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
