package webhooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caller is how the API server calls some of the webhooks.
type caller struct {
	configuration string // "" for nobody
	host          string
	bundle        string // PEM; "" for the API server's own roots
}

// callersOf lists the ways in which the two webhook configurations have the API
// server call; none, if there are no configurations or they cannot be watched.
func callersOf(ctx context.Context, from client.Reader) ([]caller, error) {
	if from == nil {
		return nil, nil
	}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, configuration := range []client.Object{mutating, validating} {
		if err := from.Get(ctx, types.NamespacedName{Name: configurations}, configuration); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	var callers []caller
	seen := map[caller]bool{}
	add := func(kind string, config admissionregistrationv1.WebhookClientConfig) {
		c := caller{configuration: kind + " " + configurations, host: hostOf(config), bundle: string(config.CABundle)}
		if !seen[c] {
			seen[c] = true
			callers = append(callers, c)
		}
	}
	for i := range mutating.Webhooks {
		add("MutatingWebhookConfiguration", mutating.Webhooks[i].ClientConfig)
	}
	for i := range validating.Webhooks {
		add("ValidatingWebhookConfiguration", validating.Webhooks[i].ClientConfig)
	}
	return callers, nil
}

// hostOf is the name by which the API server knows the server of a webhook.
func hostOf(config admissionregistrationv1.WebhookClientConfig) string {
	if config.Service != nil {
		return config.Service.Name + "." + config.Service.Namespace + ".svc"
	}
	if config.URL == nil {
		return ""
	}
	u, err := url.Parse(*config.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// proves says whether the API server would trust a certificate in this call. Where no
// authority is registered, it has roots of its own, which cannot be seen from here.
func (c caller) proves(certificate *tls.Certificate, now time.Time) bool {
	options := x509.VerifyOptions{
		DNSName: c.host, CurrentTime: now, Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if c.bundle == "" {
		return now.Before(certificate.Leaf.NotAfter)
	}
	options.Roots.AppendCertsFromPEM([]byte(c.bundle))
	for _, der := range certificate.Certificate[1:] {
		if intermediate, err := x509.ParseCertificate(der); err == nil {
			options.Intermediates.AddCert(intermediate)
		}
	}
	_, err := certificate.Leaf.Verify(options)
	return err == nil
}
