package webhooks

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// overlap is for how long authorities are trusted beside the one that took
	// their place: much longer than a Secret takes to reach all nodes.
	overlap = time.Hour

	// authorities bounds how many are trusted, if one follows another.
	authorities = 4

	// conflictPause lets the watch catch up with whoever was faster.
	conflictPause = 200 * time.Millisecond
)

// registrar registers the authority of the Secret in the webhook configurations, and
// takes those before it off a while later: until then there may be replicas that
// serve a certificate of theirs.
type registrar struct {
	client client.Client // reads from a watch
	secret types.NamespacedName
	now    func() time.Time

	newest []byte    // PEM
	since  time.Time // when this process first saw it
}

// addAuthority adds it to a manager, on the replica that leads if it is so.
func addAuthority(mgr manager.Manager, secret types.NamespacedName, oneReplica bool) error {
	ours := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: secret}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("webhook-authority").
		Watches(&corev1.Secret{}, ours).
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, ours).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, ours).
		WithOptions(controller.Options{NeedLeaderElection: &oneReplica}).
		Complete(&registrar{client: mgr.GetClient(), secret: secret, now: time.Now})
}

// Reconcile brings all webhooks into step with the Secret.
func (a *registrar) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := a.client.Get(ctx, a.secret, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	newest := secret.Data["ca.crt"]
	if len(newest) == 0 {
		return reconcile.Result{}, nil // rotation fills it in a moment
	}
	if !bytes.Equal(newest, a.newest) {
		a.newest, a.since = newest, a.now()
	}
	left := overlap - a.now().Sub(a.since)
	var errs []error
	for _, configuration := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		errs = append(errs, a.register(ctx, configuration, left > 0))
	}
	err := errors.Join(errs...)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	case err != nil:
		return reconcile.Result{}, err
	case left > 0:
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, nil
}

// register brings one of the configurations into step. Where it is missing, somebody
// takes the installation away.
func (a *registrar) register(ctx context.Context, configuration client.Object, keep bool) error {
	if err := a.client.Get(ctx, types.NamespacedName{Name: configurations}, configuration); err != nil {
		return client.IgnoreNotFound(err)
	}
	changed := false
	for _, bundle := range bundlesOf(configuration) {
		want := a.newest
		if keep {
			want = join(a.newest, *bundle, a.now())
		}
		if !bytes.Equal(*bundle, want) {
			*bundle, changed = want, true
		}
	}
	if !changed || configuration.GetDeletionTimestamp() != nil {
		return nil
	}
	ctrl.Log.Info("the authority of the webhooks is registered", "in", fmt.Sprintf("%T", configuration), "besideEarlierOnes", keep)
	return a.client.Update(ctx, configuration, client.FieldOwner(certFieldOwner))
}

// bundlesOf are the authorities of all webhooks of a configuration.
func bundlesOf(configuration client.Object) []*[]byte {
	var bundles []*[]byte
	switch c := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			bundles = append(bundles, &c.Webhooks[i].ClientConfig.CABundle)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			bundles = append(bundles, &c.Webhooks[i].ClientConfig.CABundle)
		}
	}
	return bundles
}

// join puts the newest authority before those that are registered, without what has
// ended, what is no certificate, and what is too many.
func join(newest, registered []byte, now time.Time) []byte {
	joined := slices.Clone(newest)
	seen := map[string]bool{}
	for block, rest := pem.Decode(newest); block != nil; block, rest = pem.Decode(rest) {
		seen[string(block.Bytes)] = true
	}
	for block, rest := pem.Decode(registered); block != nil && len(seen) < authorities; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || now.After(certificate.NotAfter) || seen[string(block.Bytes)] {
			continue
		}
		seen[string(block.Bytes)] = true
		joined = append(joined, pem.EncodeToMemory(block)...)
	}
	return joined
}
