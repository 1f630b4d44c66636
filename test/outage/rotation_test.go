package outage

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
	"github.com/fencedlease/fencedlease/test/traffic"
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

// mount copies the Secret of the certificate to a directory, as a kubelet does: in its
// own time, which is up to a minute there. It ends with the test.
func mount(w *suite.World, dir string, lag time.Duration) {
	ctx, cancel := context.WithCancel(w.Ctx)
	done := make(chan struct{})
	w.T.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			secret := &corev1.Secret{}
			err := w.Admin.Get(ctx, certSecret, secret)
			time.Sleep(lag)
			for name, data := range secret.Data {
				if err == nil {
					write(filepath.Join(dir, name), data)
				}
			}
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

// authority is the one in the Secret.
func authority(w *suite.World) []byte {
	w.T.Helper()
	secret := &corev1.Secret{}
	w.Must(w.Admin.Get(w.Ctx, certSecret, secret))
	return secret.Data["ca.crt"]
}

// bundles are the authorities of all webhooks, by name.
func bundles(ctx context.Context, w *suite.World) (map[string][]byte, error) {
	key := client.ObjectKey{Name: "fencedlease"}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := errors.Join(w.Admin.Get(ctx, key, mutating), w.Admin.Get(ctx, key, validating)); err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	for i := range mutating.Webhooks {
		found[mutating.Webhooks[i].Name] = mutating.Webhooks[i].ClientConfig.CABundle
	}
	for i := range validating.Webhooks {
		found[validating.Webhooks[i].Name] = validating.Webhooks[i].ClientConfig.CABundle
	}
	if len(found) < 5 {
		return nil, fmt.Errorf("there are %d webhooks", len(found))
	}
	return found, nil
}

// trusted is an error unless every webhook trusts these authorities, in this order,
// and no other.
func trusted(w *suite.World, authorities ...[]byte) error {
	bundles, err := bundles(w.Ctx, w)
	if err != nil {
		return err
	}
	want := slices.Concat(authorities...)
	for name, bundle := range bundles {
		if len(want) == 0 || !bytes.Equal(bundle, want) {
			return fmt.Errorf("%s trusts\n%swant\n%s", name, bundle, want)
		}
	}
	return nil
}

// serves is an error unless the manager serves a certificate of this authority.
func serves(ctx context.Context, manager *cluster.Manager, authority []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	dialer := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "localhost", RootCAs: roots}}
	conn, err := dialer.DialContext(ctx, "tcp", manager.WebhookAddress())
	if err != nil {
		return err
	}
	return conn.Close()
}

// connecting makes one connection after another, as the API server does where it has
// none to use again: it trusts what is registered at that moment. What is returned
// ends it, and says how many there were and what went wrong.
func connecting(w *suite.World, manager *cluster.Manager) func() (int, error) {
	ctx, cancel := context.WithCancel(w.Ctx)
	done := make(chan struct{})
	var made int
	var failed error
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; made++ {
			bundles, err := bundles(ctx, w)
			if err == nil {
				err = serves(ctx, manager, bundles["guard.fencedlease.io"])
			}
			if err != nil && ctx.Err() == nil {
				failed = errors.Join(failed, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() (int, error) {
		cancel()
		<-done
		return made, failed
	}
}

// The manager makes its own certificate, with the rights that config/rbac gives
// it: in an empty Secret, and with its authority in every webhook. And again, when
// that is lost, without a restart and, under load, without a request that fails: the
// old authority is trusted beside the new one, and a certificate is not served before
// its authority is registered.
func TestRotationOfTheCertificate(t *testing.T) {
	for name, lag := range map[string]time.Duration{
		"the certificate comes at once": 50 * time.Millisecond, "it comes later": 3 * time.Second,
	} {
		t.Run(name, func(t *testing.T) { rotation(suite.New(t), lag) })
	}
}

func rotation(w *suite.World, lag time.Duration) {
	t := w.T
	uninstall(w) // kubectl would not take the authority off that others own
	w.Must(suite.Cluster.Install(w.Ctx, atLocalhost))
	dir := t.TempDir()
	mount(w, dir, lag)
	manager := runManager(w, cluster.ManagerOptions{ExtraArgs: []string{
		"--cert-rotation", "--webhook-dns-name=localhost", "--webhook-cert-dir=" + dir,
	}}, func() {
		uninstall(w)
		w.Must(suite.Cluster.Install(w.Ctx))
	})
	first := authority(w)
	w.Must(errors.Join(trusted(w, first), serves(w.Ctx, manager, first)))

	load, stop := traffic.Send(w)
	connected := connecting(w, manager)
	secret := &corev1.Secret{}
	w.Must(w.Admin.Get(w.Ctx, certSecret, secret))
	secret.Data = nil
	w.Must(w.Admin.Update(w.Ctx, secret))
	var second []byte
	w.Eventually("there is another authority, and all webhooks trust both", func() error {
		if second = authority(w); len(second) == 0 || bytes.Equal(first, second) {
			return errors.New("it is the same")
		}
		return trusted(w, second, first)
	})
	w.Eventually("the new certificate is served", func() error { return serves(w.Ctx, manager, second) })
	stop()
	made, err := connected()
	t.Logf("%s; %d further connections", load, made)
	if err != nil {
		t.Error(err)
	}
	if failed := load.Failed(); len(failed) > 0 {
		t.Errorf("%d requests failed", len(failed))
	}
	select {
	case <-manager.Done():
		t.Error("the manager ended")
	default:
	}
	if strings.Contains(manager.Log(), "forbidden") {
		t.Errorf("a right is missing:\n%s", manager.Log())
	}
}
