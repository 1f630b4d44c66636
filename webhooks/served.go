package webhooks

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settle is for how long a new certificate has to be trusted before it is served:
// every API server follows the configurations by a watch of its own, and none should
// meet a certificate of which it has not heard.
const settle = 5 * time.Second

// lookTimeout bounds a look at what a watch knows, which waits for the watch to begin.
const lookTimeout = 100 * time.Millisecond

// ServingCertificate is what the webhooks serve: of the certificates that were found
// in the directory, the newest that the registered authorities prove. A certificate
// of a new authority may arrive before that authority is registered, since the
// Secret reaches each replica in its own time; until then the one before is served.
type ServingCertificate struct {
	now func() time.Time

	mu             sync.Mutex
	newest         func(*tls.ClientHelloInfo) (*tls.Certificate, error) // nil: none yet
	configurations client.Reader                                        // see readiness
	served         *tls.Certificate
	waiting        *tls.Certificate // newer than the one that is served
	trusted        time.Time        // since when waiting is; zero: it is not
}

// NewServingCertificate makes one that has no certificate yet.
func NewServingCertificate() *ServingCertificate { return &ServingCertificate{now: time.Now} }

// Configure has a webhook server serve it.
func (s *ServingCertificate) Configure(config *tls.Config) {
	config.MinVersion = tls.VersionTLS13
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return s.choose(hello.Context()) }
}

// from sets where the newest certificate comes from.
func (s *ServingCertificate) from(newest func(*tls.ClientHelloInfo) (*tls.Certificate, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = newest
}

// watch sets where the webhook configurations come from.
func (s *ServingCertificate) watch(configurations client.Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configurations = configurations
}

// choose is asked at each handshake. The API server keeps its connections, so that is
// seldom; a kubelet's probes make one every few seconds.
func (s *ServingCertificate) choose(ctx context.Context) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		return nil, errors.New("there is no certificate yet")
	}
	newest, err := s.newest(nil)
	if err != nil {
		return nil, err
	}
	if newest != s.served && s.due(ctx, newest) {
		if s.served != nil {
			ctrl.Log.Info("a new certificate is served", "end", newest.Leaf.NotAfter)
		}
		s.served, s.waiting, s.trusted = newest, nil, time.Time{}
		certificateEnd.Set(float64(newest.Leaf.NotAfter.Unix()))
	}
	return s.served, nil
}

// due says whether the newest certificate takes the place of the one that is served.
func (s *ServingCertificate) due(ctx context.Context, newest *tls.Certificate) bool {
	now := s.now()
	if s.served == nil || now.After(s.served.Leaf.NotAfter) {
		return true // nothing is lost by it
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	callers, err := callersOf(ctx, s.configurations)
	if err != nil {
		return false // the watch will know more
	}
	if !proved(callers, s.served, now) {
		return true
	}
	if newest != s.waiting {
		ctrl.Log.Info("a new certificate is there; the one before is served until the authority of the new one is registered")
		s.waiting, s.trusted = newest, time.Time{}
	}
	if !proved(callers, newest, now) {
		s.trusted = time.Time{}
		return false
	}
	if s.trusted.IsZero() {
		s.trusted = now
	}
	return now.Sub(s.trusted) >= settle
}

// proved says whether the API server would trust a certificate in every call.
func proved(callers []caller, certificate *tls.Certificate, now time.Time) bool {
	for _, c := range callers {
		if !c.proves(certificate, now) {
			return false
		}
	}
	return now.Before(certificate.Leaf.NotAfter)
}
