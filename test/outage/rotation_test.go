package outage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

var certSecret = client.ObjectKey{Namespace: cluster.Namespace, Name: "fencedlease-webhook-cert"}

// atLocalhost has webhooks called by the name localhost, and trusts nobody yet.
func atLocalhost(object *unstructured.Unstructured) bool {
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, item := range webhooks {
		webhook, ok := item.(map[string]any)
		if !ok {
			continue
		}
		url, _, _ := unstructured.NestedString(webhook, "clientConfig", "url")
		webhook["clientConfig"] = map[string]any{"url": strings.Replace(url, "127.0.0.1", "localhost", 1)}
		object.Object["webhooks"] = webhooks
	}
	return true
}

// mount copies the Secret of the certificate to a directory, as a kubelet does,
// until the end of the test.
func mount(w *suite.World, dir string) {
	ctx, cancel := context.WithCancel(w.Ctx)
	done := make(chan struct{})
	w.T.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			secret := &corev1.Secret{}
			if err := w.Admin.Get(ctx, certSecret, secret); err == nil {
				for name, data := range secret.Data {
					write(filepath.Join(dir, name), data)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
}

// write replaces a file at once.
func write(path string, data []byte) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return
	}
	if os.WriteFile(path+".new", data, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// trusted is an error unless every webhook trusts the authority in the Secret,
// which is returned.
func trusted(w *suite.World) ([]byte, error) {
	secret := &corev1.Secret{}
	w.Must(w.Admin.Get(w.Ctx, certSecret, secret))
	authority := secret.Data["ca.crt"]
	if len(authority) == 0 {
		return nil, errors.New("the Secret has no ca.crt")
	}
	key := client.ObjectKey{Name: "fencedlease"}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	w.Must(errors.Join(w.Admin.Get(w.Ctx, key, mutating), w.Admin.Get(w.Ctx, key, validating)))
	bundles := map[string][]byte{}
	for i := range mutating.Webhooks {
		bundles[mutating.Webhooks[i].Name] = mutating.Webhooks[i].ClientConfig.CABundle
	}
	for i := range validating.Webhooks {
		bundles[validating.Webhooks[i].Name] = validating.Webhooks[i].ClientConfig.CABundle
	}
	if len(bundles) < 5 {
		return nil, fmt.Errorf("there are %d webhooks", len(bundles))
	}
	for name, bundle := range bundles {
		if !bytes.Equal(bundle, authority) {
			return nil, fmt.Errorf("%s trusts another authority", name)
		}
	}
	return authority, nil
}

// The manager makes its own certificate, with the rights that config/rbac gives
// it: in an empty Secret, and with its authority in every webhook. And again,
// when that is lost, without a restart.
func TestRotationOfTheCertificate(t *testing.T) {
	w := suite.New(t)
	uninstall(w) // kubectl would not take the authority off that others own
	w.Must(suite.Cluster.Install(w.Ctx, atLocalhost))
	dir := t.TempDir()
	mount(w, dir)
	manager := runManager(w, cluster.ManagerOptions{ExtraArgs: []string{
		"--cert-rotation", "--webhook-dns-name=localhost", "--webhook-cert-dir=" + dir,
	}}, func() {
		uninstall(w)
		w.Must(suite.Cluster.Install(w.Ctx))
	})
	authority, err := trusted(w)
	w.Must(err)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")

	secret := &corev1.Secret{}
	w.Must(w.Admin.Get(w.Ctx, certSecret, secret))
	secret.Data = nil
	w.Must(w.Admin.Update(w.Ctx, secret))
	w.Eventually("there is another authority, trusted by all webhooks", func() error {
		now, err := trusted(w)
		if err == nil && bytes.Equal(now, authority) {
			return errors.New("it is the same")
		}
		return err
	})
	w.Eventually("acquisitions pass with the new certificate", func() error {
		_, err := pod.TryAcquire("payments", "next")
		return err
	})
	select {
	case <-manager.Done():
		t.Error("the manager ended")
	default:
	}
	if strings.Contains(manager.Log(), "forbidden") {
		t.Errorf("a right is missing:\n%s", manager.Log())
	}
}
