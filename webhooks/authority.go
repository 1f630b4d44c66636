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

	// annotationSince, on a webhook configuration, is since when the newest authority is
	// registered there.
	annotationSince = "fencedlease.io/authority-since"

	// conflictPause lets the watch catch up with whoever was faster.
	conflictPause = 200 * time.Millisecond
)

// registrar registers the authority of the Secret in the webhook configurations, and
// takes those before it off a while later: until then there may be replicas that
// serve a certificate of theirs. A configuration says itself since when, so that it
// does not begin anew with each leader.
type registrar struct {
	client client.Client // reads from a watch
	secret types.NamespacedName
	now    func() time.Time
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
func (r *registrar) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.client.Get(ctx, r.secret, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	newest := secret.Data["ca.crt"]
	if len(join(newest, nil, r.now())) == 0 {
		return reconcile.Result{}, nil // rotation makes one in a moment
	}
	var result reconcile.Result
	var errs []error
	for _, configuration := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		again, err := r.register(ctx, configuration, newest)
		if apierrors.IsConflict(err) {
			again, err = conflictPause, nil
		}
		errs = append(errs, err)
		if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
			result.RequeueAfter = again
		}
	}
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// register brings one of the configurations into step, and says after which time there
// is something to do again, if any. Where the configuration is missing, somebody takes
// the installation away.
func (r *registrar) register(ctx context.Context, configuration client.Object, newest []byte) (again time.Duration, err error) {
	if err := r.client.Get(ctx, types.NamespacedName{Name: configurations}, configuration); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if configuration.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	bundles := bundlesOf(configuration)
	since := r.since(configuration, bundles, newest)
	left := overlap - r.now().Sub(since)
	changed := false
	for _, bundle := range bundles {
		var earlier []byte
		if left > 0 {
			earlier = *bundle
		}
		if want := join(newest, earlier, r.now()); !bytes.Equal(*bundle, want) {
			*bundle, changed = want, true
		}
	}
	annotations := configuration.GetAnnotations()
	if said := since.UTC().Format(time.RFC3339); annotations[annotationSince] != said {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationSince] = said
		configuration.SetAnnotations(annotations)
		changed = true
	}
	if changed {
		ctrl.Log.Info("the authority of the webhooks is registered", "in", fmt.Sprintf("%T", configuration), "besideEarlierOnes", left > 0)
		err = r.client.Update(ctx, configuration, client.FieldOwner(certFieldOwner))
	}
	return max(left, 0), err
}

// since is when the newest authority was registered in a configuration: now, if it is
// not, or if that is not known.
func (r *registrar) since(configuration client.Object, bundles []*[]byte, newest []byte) time.Time {
	now := r.now()
	registered := slices.ContainsFunc(bundles, func(bundle *[]byte) bool {
		return bytes.HasPrefix(*bundle, join(newest, nil, now))
	})
	since, err := time.Parse(time.RFC3339, configuration.GetAnnotations()[annotationSince])
	if !registered || err != nil || since.After(now) {
		return now
	}
	return since
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
	var joined []byte
	seen := map[string]bool{}
	for i, bundle := range [][]byte{newest, registered} {
		for block, rest := pem.Decode(bundle); block != nil && len(seen) < authorities; block, rest = pem.Decode(rest) {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil || seen[string(block.Bytes)] || i > 0 && now.After(certificate.NotAfter) {
				continue
			}
			seen[string(block.Bytes)] = true
			joined = append(joined, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	return joined
}
