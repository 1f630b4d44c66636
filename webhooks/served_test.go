package webhooks

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// issue makes a certificate for the name of the Service, valid for so many days from today.
func (a *authority) issue(t *testing.T, days int) *tls.Certificate {
	t.Helper()
	der, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(3), DNSNames: []string{"hooks.system.svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: today.AddDate(0, -1, 0), NotAfter: today.AddDate(0, 0, days),
	})
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// A replica has its old certificate, and finds a new one.
func TestServingCertificate(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	trusting := func(bundle []byte) *known {
		return &known{mutating: []admissionregistrationv1.WebhookClientConfig{{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "system", Name: "hooks"}, CABundle: bundle,
		}}}
	}
	both := append(append([]byte{}, after.pem...), before.pem...)
	for name, tc := range map[string]struct {
		signer *authority // of the new one
		trust  *known
		days   int // for which the old one is valid
		later  time.Duration
		want   bool // the new one
	}{
		"its authority is not registered":          {signer: after, trust: trusting(before.pem), days: 30, later: time.Hour},
		"its authority has just been registered":   {signer: after, trust: trusting(both), days: 30, later: settle - 1},
		"its authority was registered a while ago": {signer: after, trust: trusting(both), days: 30, later: settle, want: true},
		"the same authority":                       {signer: before, trust: trusting(before.pem), days: 30, later: settle, want: true},
		"the old one is not trusted":               {signer: after, trust: trusting(after.pem), days: 30, want: true},
		"neither is trusted":                       {signer: after, trust: trusting(newAuthority(t).pem), days: 30, want: true},
		"the old one ended":                        {signer: after, trust: trusting(before.pem), days: -1, want: true},
		"nothing is registered":                    {signer: after, trust: &known{}, days: 30, later: settle, want: true},
		"the API server's own roots":               {signer: after, trust: trusting(nil), days: 30, later: settle, want: true},
		"the configurations are not known":         {signer: after, trust: &known{err: errors.New("no watch")}, days: 30, later: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			old, next := before.issue(t, tc.days), tc.signer.issue(t, 60)
			now, found := today, old
			s := NewServingCertificate()
			s.now = func() time.Time { return now }
			s.from(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return found, nil })
			s.watch(trusting(before.pem))
			served := func(want *tls.Certificate) {
				t.Helper()
				got, err := s.choose(t.Context())
				if err != nil || got != want {
					t.Fatalf("served %p, want %p of %p, %p: %v", got, want, old, next, err)
				}
			}
			served(old)
			found = next
			s.watch(tc.trust)
			if tc.later > 0 {
				served(old)
			}
			now = now.Add(tc.later)
			if tc.want {
				served(next)
			} else {
				served(old)
			}
		})
	}
}

// What was trusted for a moment only has to be so again, for the whole time.
func TestServingCertificateSettlesAnew(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	old, next := before.issue(t, 30), after.issue(t, 30)
	now, found := today, old
	registered := &known{}
	trust := func(bundle []byte) {
		registered.validating = []admissionregistrationv1.WebhookClientConfig{{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "system", Name: "hooks"}, CABundle: bundle,
		}}
	}
	s := NewServingCertificate()
	s.now = func() time.Time { return now }
	s.from(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return found, nil })
	s.watch(registered)
	both := append(append([]byte{}, after.pem...), before.pem...)
	for i, step := range []struct {
		found  *tls.Certificate
		bundle []byte
		after  time.Duration
		want   *tls.Certificate
	}{
		{old, before.pem, 0, old},
		{next, both, 0, old},
		{next, both, settle - 1, old},
		{next, before.pem, 1, old}, // somebody took it off
		{next, both, 1, old},
		{next, both, settle - 1, old},
		{next, both, 1, next},
	} {
		now, found = now.Add(step.after), step.found
		trust(step.bundle)
		if got, err := s.choose(t.Context()); err != nil || got != step.want {
			t.Errorf("step %d: got %p, want %p: %v", i, got, step.want, err)
		}
	}
}

func TestServingCertificateWithoutAny(t *testing.T) {
	if got, err := NewServingCertificate().choose(t.Context()); err == nil {
		t.Errorf("got %v", got)
	}
}
