package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// requestTimeout is the deadline of a request to the API server.
	requestTimeout = 10 * time.Second
	// retryPeriod is how long to wait before something that failed is tried again.
	retryPeriod = time.Second
)

// agent is the node.
type agent struct {
	*options
	client  kubernetes.Interface // its requests have a deadline
	watcher kubernetes.Interface // its requests have none
	spawner *spawner
	network *network
	node    *corev1.Node
	// apiServer has the variables by which containers find the API server. It need not
	// be there for a container to be started again.
	apiServer map[string]string

	mu   sync.Mutex
	pods map[types.UID]*pod
	wg   sync.WaitGroup // the Pods'
}

func newAgent(o *options) (*agent, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the tests' own control plane needs no protection
	a := &agent{options: o, pods: map[types.UID]*pod{}}
	if a.watcher, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	a.client, err = kubernetes.NewForConfig(config)
	return a, err
}

// run is the node's life. When it returns, nothing is left but the logs.
func (a *agent) run(ctx context.Context) (err error) {
	// What an agent may have left that was killed.
	if err := errors.Join(os.RemoveAll(a.podsDir()), os.MkdirAll(a.podsDir(), 0o700)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(a.podsDir())) }()
	a.spawner = newSpawner()
	defer a.spawner.close()
	if a.network, err = newNetwork(ctx, a.bridge, a.address, a.spawner); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.network.close(context.WithoutCancel(ctx))) }()

	// Whatever ends ends all.
	ctx, cancel := context.WithCancel(ctx)
	defer a.wg.Wait()
	defer cancel()
	port, err := a.serveLogs(ctx)
	if err != nil {
		return err
	}
	if err := a.register(ctx, port); err != nil {
		return fmt.Errorf("register the node: %w", err)
	}
	if a.apiServer, err = a.findAPIServer(ctx); err != nil {
		return err
	}
	a.wg.Go(func() { a.heartbeat(ctx) })
	return a.watch(ctx)
}

func (a *agent) podsDir() string { return filepath.Join(a.dir, "pods") }

// watch looks at the Pods of the cluster until the context ends. Each is looked at
// again every now and then, which is the retry of what failed.
func (a *agent) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(a.watcher, retryPeriod)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { a.observe(ctx, obj) },
		UpdateFunc: func(_, obj any) { a.observe(ctx, obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if gone, ok := obj.(*corev1.Pod); ok {
				a.forget(gone.UID)
			}
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// observe takes notice of a Pod as it is now.
func (a *agent) observe(ctx context.Context, obj any) {
	latest, ok := obj.(*corev1.Pod)
	if !ok || ctx.Err() != nil {
		return
	}
	switch latest.Spec.NodeName {
	case "":
		if err := a.schedule(ctx, latest); err != nil {
			slog.Warn("a Pod cannot be bound yet", "pod", fullName(latest), "error", err)
		}
	case a.name:
		a.mu.Lock()
		defer a.mu.Unlock()
		p := a.pods[latest.UID]
		if p == nil {
			p = newPod(ctx, a, latest)
			a.pods[latest.UID] = p
			a.wg.Go(p.run)
		}
		p.observe(latest)
	}
}

// forget ends a Pod whose object is gone. A Pod that is replaced by another of its
// name is never seen to go by itself: names are not enough.
func (a *agent) forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pods[uid]; p != nil {
		p.forget()
		delete(a.pods, uid)
	}
}

// find returns the Pod of a name that came last.
func (a *agent) find(namespace, name string) *pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found *pod
	for _, p := range a.pods {
		if p.spec.Namespace == namespace && p.spec.Name == name &&
			(found == nil || found.spec.CreationTimestamp.Before(&p.spec.CreationTimestamp)) {
			found = p
		}
	}
	return found
}

func fullName(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }
