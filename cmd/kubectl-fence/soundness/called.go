package soundness

import (
	"context"
	"errors"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// probe is the start of the names of objects that are written in dry runs only.
const probe = "fencedlease-probe-"

const (
	checkMint  = "mint answers"
	checkGuard = "guard answers"
)

// errNotCalled says that the API server admitted what a webhook would not have.
var errNotCalled = errors.New("the API server does not call it")

// mintCalled: mint takes our label off a Lease to which anybody but the operator
// put it.
func (c *Checker) mintCalled(ctx context.Context) Result {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.namespace, GenerateName: probe,
		Labels: map[string]string{v1alpha1.LabelFencedBy: probe + "none"},
	}}
	err := c.client.Create(ctx, lease, client.DryRunAll)
	if err == nil && lease.Labels[v1alpha1.LabelFencedBy] != "" {
		err = errNotCalled
	}
	return c.called(checkMint, "leases", err)
}

// guardCalled: guard refuses a token that is none.
func (c *Checker) guardCalled(ctx context.Context) Result {
	err := c.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.namespace, GenerateName: probe,
		Labels:      map[string]string{v1alpha1.LabelGuardedBy: probe + "none"},
		Annotations: map[string]string{v1alpha1.AnnotationToken: "none"},
	}}, client.DryRunAll)
	switch {
	case err == nil:
		err = errNotCalled
	case apierrors.ReasonForError(err) == metav1.StatusReason(fence.ReasonInvalid):
		err = nil
	}
	return c.called(checkGuard, "configmaps", err)
}

// called is the result of a dry run that a webhook should have answered.
func (c *Checker) called(check, resource string, err error) Result {
	switch {
	case err == nil:
		return ok(check, "a dry run in namespace "+c.namespace+" was answered as it should be")
	case errors.Is(err, errNotCalled):
		return failed(check, "a dry run in namespace "+c.namespace+" went past it: "+err.Error(),
			"see whether its webhook configuration selects this namespace (the operator's own is never fenced: try another, with -n); "+
				"a configuration that was just applied takes effect a moment later")
	case apierrors.IsForbidden(err):
		return warning(check, "not tried: "+err.Error(),
			"ask somebody who may create "+resource+" in namespace "+c.namespace+", or name another namespace with -n; it is a dry run, and creates none")
	case apierrors.IsNotFound(err):
		return warning(check, "not tried: "+err.Error(), "name a namespace that exists, with -n")
	default:
		return failed(check, err.Error(), remedyOf(err.Error()))
	}
}

// remedyOf is what to do about a webhook that was not reached, by what the API
// server says of it.
func remedyOf(message string) string {
	switch {
	case strings.Contains(message, "x509") || strings.Contains(message, "tls:"):
		return "the certificate that the operator serves does not go with the caBundle of its webhook configuration: " +
			"see who is in charge of it (the operator itself, with --cert-rotation, or else you), and the operator's log"
	case strings.Contains(message, "service") && strings.Contains(message, "not found"):
		return "the Service that the webhook configuration names does not exist: " + installed
	case strings.Contains(message, "no endpoints available"):
		return "no replica of the operator is ready: see its Pods and their logs"
	case strings.Contains(message, "connection refused"), strings.Contains(message, "no route to host"),
		strings.Contains(message, "deadline exceeded"), strings.Contains(message, "timeout"):
		return "the API server does not reach the operator: see whether its Pods are ready, and whether a NetworkPolicy or firewall lies between them"
	default:
		return "see the operator's log"
	}
}
