package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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

// startControllerManager starts kube-controller-manager. Each of its controllers
// runs under a service account of its own, as in most clusters: the guard tells
// them apart by it.
func (c *Cluster) startControllerManager(ctx context.Context) error {
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
	if err := c.Kubeconfig(kubeconfig, user); err != nil {
		return err
	}
	authority := c.path("kube-apiserver-ca.crt")
	if err := os.WriteFile(authority, c.Admin.CAData, 0o600); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}

	log := c.path(name + ".log")
	c.controllerManager, err = process.Start(c.Dir, name, path, log,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+localhost,
		fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir="+c.path(name+"-certs"),
		"--root-ca-file="+authority,
		"--controllers="+strings.Join(controllers, ","),
		"--use-service-account-credentials",
		"--leader-elect=false",
		// Its default of 20 requests a second would make tests wait.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
	if err != nil {
		return err
	}

	err = waitUnless(ctx, c.controllerManager.Done(), startTimeout, name, func(ctx context.Context) error {
		// Its certificate is one that it made up itself.
		if err := healthy(ctx, "https://"+address(port)+"/healthz", rest.TLSClientConfig{Insecure: true}); err != nil {
			return err
		}
		// Only an effect of a controller shows that they run.
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, process.Tail(log, 20))
	}
	return nil
}

// healthy says whether a GET of a URL is answered with 200.
func healthy(ctx context.Context, url string, tls rest.TLSClientConfig) error {
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: tls, Timeout: requestTimeout})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
