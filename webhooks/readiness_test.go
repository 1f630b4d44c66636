package webhooks

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// today is when the tests of readiness take place.
var today = time.Date(2026, time.June, 1, 12, 0, 0, 0, time.UTC)

// authority signs certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority " + rand.Text()}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: today.AddDate(-1, 0, 0), NotAfter: today.AddDate(9, 0, 0),
	}}
	der, key := a.sign(a.certificate)
	var err error
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.key = key
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// sign signs a certificate with a new key; its own, as long as there is no other.
func (a *authority) sign(template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// listen serves a certificate for the name of the Service, valid for so many days
// from today.
func (a *authority) listen(days int) string {
	a.t.Helper()
	der, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"hooks.system.svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: today.AddDate(0, -1, 0), NotAfter: today.AddDate(0, 0, days),
	})
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				if secure, ok := conn.(*tls.Conn); ok {
					_ = secure.Handshake() // the test has its own end of it
				}
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// known is what a watch knows of the webhook configurations.
type known struct {
	client.Reader

	mutating, validating []admissionregistrationv1.WebhookClientConfig // nil: there is none
	err                  error
	reads                int
}

func (k *known) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	k.reads++
	missing := apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	switch o := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for _, config := range k.mutating {
			o.Webhooks = append(o.Webhooks, admissionregistrationv1.MutatingWebhook{ClientConfig: config})
		}
		if k.mutating == nil && k.err == nil {
			return missing
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for _, config := range k.validating {
			o.Webhooks = append(o.Webhooks, admissionregistrationv1.ValidatingWebhook{ClientConfig: config})
		}
		if k.validating == nil && k.err == nil {
			return missing
		}
	}
	return k.err
}

func TestReadiness(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	url := func(u string, bundle []byte) []admissionregistrationv1.WebhookClientConfig {
		return []admissionregistrationv1.WebhookClientConfig{{URL: &u, CABundle: bundle}}
	}
	service := func(bundle []byte) []admissionregistrationv1.WebhookClientConfig {
		return []admissionregistrationv1.WebhookClientConfig{{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "system", Name: "hooks"}, CABundle: bundle,
		}}
	}
	const mutating, validating = "does not fit the MutatingWebhookConfiguration fencedlease", "does not fit the ValidatingWebhookConfiguration fencedlease"
	for name, tc := range map[string]struct {
		known    known
		days     int // for which the certificate is valid
		rotation bool
		silent   bool   // nobody listens
		want     string // "" for ready
	}{
		"the authority is registered":              {known: known{mutating: service(ours.pem), validating: service(ours.pem)}, days: 30},
		"it is one of two, during a rotation":      {known: known{mutating: service(append(append([]byte{}, others.pem...), ours.pem...))}, days: 30},
		"called at a URL":                          {known: known{validating: url("https://hooks.system.svc:9443/guard", ours.pem)}, days: 30},
		"another authority, for mutating":          {known: known{mutating: service(others.pem), validating: service(ours.pem)}, days: 30, want: mutating},
		"another authority, for validating":        {known: known{mutating: service(ours.pem), validating: service(others.pem)}, days: 30, want: validating},
		"another name":                             {known: known{validating: url("https://elsewhere:9443/guard", ours.pem)}, days: 30, want: validating + ", which calls elsewhere"},
		"no URL that could be called":              {known: known{validating: url("https://%/guard", ours.pem)}, days: 30, want: validating},
		"a bundle that is none":                    {known: known{mutating: service([]byte("none"))}, days: 30, want: mutating},
		"the certificate ended":                    {known: known{mutating: service(ours.pem)}, days: -1, want: "the certificate that is served ended at 2026-05-31"},
		"rotation has registered nothing yet":      {known: known{mutating: service(nil)}, days: 30, rotation: true, want: "the caBundle of the MutatingWebhookConfiguration fencedlease is empty"},
		"the API server's own roots":               {known: known{mutating: service(nil)}, days: 30},
		"its own roots, and the certificate ended": {known: known{mutating: service(nil)}, days: -1, want: "ended"},
		"its own roots, and another name":          {known: known{mutating: url("https://elsewhere/mint", nil)}, days: 30, want: mutating},
		"not installed":                            {days: 30},
		"not installed, with rotation":             {days: 30, rotation: true},
		"not installed, and the certificate ended": {days: -1, want: "ended"},
		"not known yet":                            {known: known{err: errors.New("no watch")}, days: 30, want: "the webhook configurations are not known yet: no watch"},
		"nobody listens":                           {known: known{mutating: service(ours.pem)}, silent: true, want: "the webhooks do not answer at "},
		"nobody listens, and nobody calls":         {silent: true, want: "the webhooks do not answer at "},
	} {
		t.Run(name, func(t *testing.T) {
			r := &readiness{configurations: &tc.known, ownAuthority: tc.rotation, now: func() time.Time { return today }}
			if tc.silent {
				r.address = net.JoinHostPort("127.0.0.1", "1")
			} else {
				ours.t = t
				r.address = ours.listen(tc.days)
			}
			err := r.check(t.Context())
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("not ready: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Without the right to watch the configurations, the certificate's own end counts.
func TestReadinessWithoutConfigurations(t *testing.T) {
	ours := newAuthority(t)
	for days, ready := range map[int]bool{30: true, -1: false} {
		r := &readiness{address: ours.listen(days), ownAuthority: true, now: func() time.Time { return today }}
		if err := r.check(t.Context()); (err == nil) != ready {
			t.Errorf("a certificate for %d days: %v", days, err)
		}
	}
}

// A probe is no load: an answer stands for a while, and not for longer.
func TestReadinessLooksSeldom(t *testing.T) {
	now, knows := today, &known{err: errors.New("no watch")}
	r := &readiness{configurations: knows, now: func() time.Time { return now }}
	for _, step := range []struct {
		after time.Duration
		reads int
	}{{0, 1}, {0, 1}, {readinessAge - 1, 1}, {1, 2}, {readinessAge, 3}, {-time.Hour, 4}} {
		now = now.Add(step.after)
		if r.check(t.Context()) == nil || knows.reads != step.reads {
			t.Errorf("after %s: %d reads, want %d", step.after, knows.reads, step.reads)
		}
	}
}
