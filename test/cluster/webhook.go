package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
)

// webhookServer is where the manager serves its webhooks and how it proves it:
// both stay the same while managers come and go.
type webhookServer struct {
	port    int
	certDir string // tls.crt, tls.key
	bundle  []byte // authorities, PEM

	// Which kinds of webhook the API server was told to call.
	mutating, validating bool
}

// prepare picks a port and makes a self-signed certificate.
func (w *webhookServer) prepare(ctx context.Context, dir string) (err error) {
	if w.port != 0 {
		return nil
	}
	service := webhookService + "." + Namespace + ".svc"
	certificate, key, err := cert.GenerateSelfSignedCertKey(service, []net.IP{net.ParseIP(localhost)}, nil)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err = os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	w.certDir, w.bundle = dir, certificate
	w.port, err = FreePort(ctx)
	return err
}

// patch is a [Patch] that has webhooks called at the server's URL instead of
// the Service, which leads nowhere without nodes.
func (w *webhookServer) patch(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "MutatingWebhookConfiguration":
		w.mutating = true
	case "ValidatingWebhookConfiguration":
		w.validating = true
	default:
		return true
	}
	// Rendered manifests hold nothing but maps and lists.
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, item := range webhooks {
		webhook, ok := item.(map[string]any)
		if !ok {
			continue
		}
		path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		webhook["clientConfig"] = map[string]any{
			"url":      fmt.Sprintf("https://%s%s", address(w.port), path),
			"caBundle": base64.StdEncoding.EncodeToString(w.bundle),
		}
	}
	object.Object["webhooks"] = webhooks
	return true
}

// WebhookURL is where the API server calls the webhook of a path, such as /guard.
func (c *Cluster) WebhookURL(path string) string {
	return "https://" + address(c.webhook.port) + path
}

// WebhookAddress is where the API server calls the webhooks.
func (c *Cluster) WebhookAddress() string { return address(c.webhook.port) }

// WebhookCertificate is the certificate that the webhooks have, with its key: for
// somebody else in their place.
func (c *Cluster) WebhookCertificate() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(filepath.Join(c.webhook.certDir, "tls.crt"), filepath.Join(c.webhook.certDir, "tls.key"))
}

// WebhookCA is the authority, in PEM, of the certificate that the webhooks have.
func (c *Cluster) WebhookCA() []byte { return bytes.Clone(c.webhook.bundle) }
