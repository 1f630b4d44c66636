package blackhole

import (
	"context"
	"errors"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// configurations are the webhook configurations, as they can be put back.
type configurations struct {
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
	there      bool
}

// installed are the configurations that are there.
func installed(w *suite.World) *configurations {
	w.T.Helper()
	c := &configurations{
		mutating: &admissionregistrationv1.MutatingWebhookConfiguration{}, validating: &admissionregistrationv1.ValidatingWebhookConfiguration{},
		there: true,
	}
	key := client.ObjectKey{Name: "fencedlease"}
	w.Must(errors.Join(w.Admin.Get(w.Ctx, key, c.mutating), w.Admin.Get(w.Ctx, key, c.validating)))
	c.mutating.ObjectMeta, c.validating.ObjectMeta = metav1.ObjectMeta{Name: key.Name}, metav1.ObjectMeta{Name: key.Name}
	return c
}

// mintAndGuard are two of the webhooks.
type mintAndGuard struct {
	mint  *admissionregistrationv1.MutatingWebhook
	guard *admissionregistrationv1.ValidatingWebhook
}

// changed are the configurations with a change to mint and guard, not put back yet. A
// second is the timeout of all their webhooks.
func (c *configurations) changed(change func(mintAndGuard)) *configurations {
	other := &configurations{mutating: c.mutating.DeepCopy(), validating: c.validating.DeepCopy()}
	var both mintAndGuard
	for i := range other.mutating.Webhooks {
		webhook := &other.mutating.Webhooks[i]
		*webhook.TimeoutSeconds = 1
		if webhook.Name == "mint.fencedlease.io" {
			both.mint = webhook
		}
	}
	for i := range other.validating.Webhooks {
		webhook := &other.validating.Webhooks[i]
		*webhook.TimeoutSeconds = 1
		if webhook.Name == "guard.fencedlease.io" {
			both.guard = webhook
		}
	}
	change(both)
	return other
}

// timeout is that of the webhook with this name.
func (c *configurations) timeout(w *suite.World, name string) time.Duration {
	w.T.Helper()
	for i := range c.mutating.Webhooks {
		if webhook := &c.mutating.Webhooks[i]; webhook.Name == name {
			return time.Duration(*webhook.TimeoutSeconds) * time.Second
		}
	}
	for i := range c.validating.Webhooks {
		if webhook := &c.validating.Webhooks[i]; webhook.Name == name {
			return time.Duration(*webhook.TimeoutSeconds) * time.Second
		}
	}
	w.T.Fatalf("there is no webhook %s", name)
	return 0
}

// takeAway returns when the API server calls no webhook any more.
func (c *configurations) takeAway(w *suite.World) {
	w.T.Helper()
	if !c.there {
		return
	}
	w.Must(errors.Join(w.Admin.Delete(w.Ctx, c.mutating.DeepCopy()), w.Admin.Delete(w.Ctx, c.validating.DeepCopy())))
	c.there = false
	w.Eventually("no webhook is called", func() error {
		// One that is still called does not answer.
		ctx, cancel := context.WithTimeout(w.Ctx, 200*time.Millisecond)
		defer cancel()
		return errors.Join(fence(ctx, w), guard(ctx, w))
	})
}

// putBack creates the configurations again. The API server reads them a little later.
func (c *configurations) putBack(w *suite.World) {
	w.T.Helper()
	if c.there {
		return
	}
	w.Must(errors.Join(w.Admin.Create(w.Ctx, c.mutating.DeepCopy()), w.Admin.Create(w.Ctx, c.validating.DeepCopy())))
	c.there = true
}

// fence creates a Lease for which the API server asks mint, and nothing comes of it.
func fence(ctx context.Context, w *suite.World) error {
	return w.Admin.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: "nothing", Labels: map[string]string{v1alpha1.LabelFencedBy: "nobody"},
	}}, client.DryRunAll)
}

// guard creates a ConfigMap for which the API server asks guard, and nothing comes of it.
func guard(ctx context.Context, w *suite.World) error {
	return w.Admin.Create(ctx, w.ConfigMap("nothing", suite.GuardedBy("nobody")), client.DryRunAll)
}
