package cluster

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// probe is the name of objects that are written with a dry run only.
const probe = "fencedlease-probe"

// AwaitWebhooks waits until the API server calls the webhooks that Install
// applied: StartManager does, too.
func (c *Cluster) AwaitWebhooks(ctx context.Context) error { return c.waitForWebhooks(ctx, nil) }

// waitForWebhooks waits until the API server calls the webhooks: it reads their
// configurations a little after they were applied.
func (c *Cluster) waitForWebhooks(ctx context.Context, gone <-chan struct{}) error {
	if c.webhook.mutating {
		if err := waitUnless(ctx, gone, startTimeout, "the mutating webhooks", c.mutatingInForce); err != nil {
			return err
		}
	}
	if c.webhook.validating {
		return waitUnless(ctx, gone, startTimeout, "the validating webhooks", c.validatingInForce)
	}
	return nil
}

// mutatingInForce: mint takes our label off a Lease to which anybody else put it.
func (c *Cluster) mutatingInForce(ctx context.Context) error {
	lease, err := c.client.CoordinationV1().Leases(metav1.NamespaceDefault).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: probe, Labels: map[string]string{v1alpha1.LabelFencedBy: probe}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil && lease.Labels[v1alpha1.LabelFencedBy] != "" {
		return errors.New("the label " + v1alpha1.LabelFencedBy + " stays on a Lease")
	}
	return err
}

// validatingInForce: guard refuses a token that is none.
func (c *Cluster) validatingInForce(ctx context.Context) error {
	_, err := c.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:        probe,
			Labels:      map[string]string{v1alpha1.LabelGuardedBy: probe},
			Annotations: map[string]string{v1alpha1.AnnotationToken: "none"},
		},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		return errors.New("a ConfigMap with a malformed token is admitted")
	case apierrors.ReasonForError(err) == "FencingTokenInvalid":
		return nil
	default:
		return fmt.Errorf("a ConfigMap with a malformed token: %w", err)
	}
}
