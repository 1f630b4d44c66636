package cluster

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/test/cluster/process"
)

// controllers are those that tests and users notice. The others look after
// nodes and workloads, of which there are none.
var controllers = []string{
	"namespace-controller",                        // empties and ends namespaces in deletion
	"garbage-collector-controller",                // deletes dependents
	"serviceaccount-controller",                   // a service account "default" in each namespace
	"root-ca-certificate-publisher-controller",    // its authority in each namespace
	"clusterrole-aggregation-controller",          // admin, edit and view get what config/rbac adds
	"validatingadmissionpolicy-status-controller", // type checks of admission policies
}

// workloadControllers are those that make Pods, and look after them and their node.
var workloadControllers = []string{
	"deployment-controller",
	"replicaset-controller",
	"job-controller",
	"ttl-after-finished-controller",
	"endpointslice-controller",
	"disruption-controller",
	"pod-garbage-collector-controller",
	"node-lifecycle-controller", // takes the taint off a new node that is ready
}

// startControllerManager starts kube-controller-manager. Each of its controllers
// runs under a service account of its own, as in most clusters: the guard tells
// them apart by it.
func (c *Cluster) startControllerManager(ctx context.Context, workloads bool) error {
	c.say("starting kube-controller-manager")
	const name = "kube-controller-manager"
	path, err := Asset(name)
	if err != nil {
		return err
	}
	user, err := c.UserConfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	kubeconfig := c.path(name + ".kubeconfig")
	if err = c.Kubeconfig(kubeconfig, user); err != nil {
		return err
	}
	authority := c.path("kube-apiserver-ca.crt")
	if err = os.WriteFile(authority, c.Admin.CAData, 0o600); err != nil {
		return err
	}

	names := controllers
	if workloads {
		names = slices.Concat(controllers, workloadControllers)
	}
	log := c.path(name + ".log")
	c.controllerManager, err = process.Start(c.Dir, name, path, log,
		"--kubeconfig="+kubeconfig,
		"--secure-port=0", // serve nothing
		"--root-ca-file="+authority,
		"--controllers="+strings.Join(names, ","),
		"--use-service-account-credentials",
		"--leader-elect=false",
		// Its default of 20 requests a second would make tests wait.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
	if err != nil {
		return err
	}

	// Nothing but its effect shows that a controller runs.
	err = waitUnless(ctx, c.controllerManager.Done(), startTimeout, name, func(ctx context.Context) error {
		_, getErr := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return getErr
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, process.Tail(log, 20))
	}
	return nil
}
