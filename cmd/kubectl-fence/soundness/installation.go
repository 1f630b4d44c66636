package soundness

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// Installation checks what is the same for everybody: the CRD, the webhooks, and
// that the API server calls them.
func (c *Checker) Installation(ctx context.Context) []Result {
	served := c.servedKind(ctx)
	results := []Result{served}
	if served.Level == Failed {
		return results // whatever else is missing comes with it
	}
	results = append(results, c.webhooks(ctx)...)
	results = append(results, c.mintCalled(ctx), c.guardCalled(ctx), c.reconciled(ctx))
	return results
}

const checkCRD = "CRD"

// installed is how to install what is missing.
const installed = "install FencedLease, with Helm (charts/fencedlease) or `kubectl apply --server-side -k config/default`"

// servedKind: the API server serves FencedLeases in the version that we speak.
func (c *Checker) servedKind(context.Context) Result {
	version := v1alpha1.GroupVersion
	list, err := c.discovery.ServerResourcesForGroupVersion(version.String())
	switch {
	case apierrors.IsNotFound(err):
		return failed(checkCRD, "the API server does not serve "+version.String(), installed)
	case err != nil:
		return failed(checkCRD, "what the API server serves cannot be found out: "+err.Error(), "see whether the kubeconfig names the right cluster")
	}
	missing := map[string]bool{"fencedleases": true, "fencedleases/status": true}
	for _, resource := range list.APIResources {
		delete(missing, resource.Name)
	}
	if len(missing) > 0 {
		return failed(checkCRD, "the API server serves "+version.String()+" without fencedleases and fencedleases/status", installed)
	}
	return ok(checkCRD, "fencedleases."+version.Group+" is served as "+version.Version)
}

const checkReady = "FencedLeases"

// reconciled: the operator has looked at the FencedLeases of the namespace, and
// they are Ready.
func (c *Checker) reconciled(ctx context.Context) Result {
	list := &v1alpha1.FencedLeaseList{}
	if err := c.client.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
		return warning(checkReady, "those of namespace "+c.namespace+" cannot be listed: "+err.Error(), "ask somebody who may list them")
	}
	var problems []string
	for i := range list.Items {
		fl := &list.Items[i]
		switch ready := meta.FindStatusCondition(fl.Status.Conditions, v1alpha1.ConditionReady); {
		case ready == nil || ready.ObservedGeneration < fl.Generation:
			problems = append(problems, fl.Name+": the operator has not looked at it as it is now")
		case ready.Status != "True":
			problems = append(problems, fl.Name+": "+ready.Reason+": "+ready.Message)
		}
	}
	if len(problems) > 0 {
		return warning(checkReady, "not Ready in namespace "+c.namespace+": "+strings.Join(problems, "; "),
			"`kubectl fence status` shows each; if the operator looks at none, see its log")
	}
	return ok(checkReady, fmt.Sprintf("%d in namespace %s, all Ready", len(list.Items), c.namespace))
}
