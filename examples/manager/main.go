// Command manager is a controller-runtime manager with fenced leadership: it keeps
// the balance in each guarded ConfigMap of its namespace at what the ConfigMap asks
// for. Of what follows only leader.NewManager is about fencing; docs/controllers.md
// shows the difference.
package main

import (
	"context"
	"flag"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/fencedlease/fencedlease/leader"
)

func main() {
	namespace := flag.String("namespace", os.Getenv("POD_NAMESPACE"), "where the Lease and the ConfigMaps are")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*namespace); err != nil {
		ctrl.Log.Error(err, "the manager ends")
		os.Exit(1)
	}
}

func run(namespace string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, _, err := leader.NewManager(config, ctrl.Options{
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		LeaderElectionID:              "payments",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
	}, leader.Options{
		Seal: []leader.Target{{Resource: corev1.SchemeGroupVersion.WithResource("configmaps")}},
	})
	if err != nil {
		return err
	}
	reconciler := &accounts{mgr.GetClient()}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// accounts reconciles ConfigMaps: it knows nothing of terms and tokens.
type accounts struct{ client.Client }

// Reconcile makes the balance what is wanted.
func (a *accounts) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	account := &corev1.ConfigMap{}
	if err := a.Get(ctx, req.NamespacedName, account); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	wanted, ok := account.Data["wanted"]
	if !ok || account.Data["balance"] == wanted {
		return ctrl.Result{}, nil
	}
	account.Data["balance"] = wanted
	return ctrl.Result{}, a.Update(ctx, account)
}
