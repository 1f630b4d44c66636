package webhooks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// certificatePoll is the pause between two looks for the first certificate.
const certificatePoll = 200 * time.Millisecond

// Server serves the webhooks on a manager's webhook server, on every replica.
type Server struct {
	mgr     manager.Manager
	live    client.Client
	options Options
	started atomic.Bool

	readiness *readiness
	mu        sync.Mutex
	said      string // of why it is not ready; "" while it is
}

// Options are what a Server needs to know.
type Options struct {
	// Operator is the user name of this program as the API server sees it.
	Operator string

	// CertDir is the directory of tls.crt and tls.key. They are awaited, since
	// certificate rotation makes them after the manager has started, and read
	// again when they change.
	CertDir string

	// Certificate is what the manager's webhook server serves.
	Certificate *ServingCertificate

	// Address is that of the webhook server, host:port; no host for all.
	Address string

	// OwnAuthority says that certificate rotation makes the certificate.
	OwnAuthority bool

	// Draining is how this replica ends.
	Draining *Draining
}

var _ manager.LeaderElectionRunnable = (*Server)(nil)

// NewServer makes a Server that is then added to the manager. The reads of live
// ask the API server each time.
func NewServer(mgr manager.Manager, live client.Client, options Options) *Server {
	return &Server{mgr: mgr, live: live, options: options, readiness: &readiness{
		address: options.Address, ownAuthority: options.OwnAuthority, now: time.Now,
	}}
}

// NeedLeaderElection is false: webhooks serve on every replica.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves as soon as there is a certificate and the watches have caught up.
func (s *Server) Start(ctx context.Context) error {
	if !s.awaitCertificate(ctx) {
		return nil
	}
	watcher, err := certwatcher.New(s.certificateFiles())
	if err != nil {
		return fmt.Errorf("the certificate cannot be watched: %w", err)
	}
	if err := s.mgr.Add(watcher); err != nil {
		return err
	}
	s.options.Certificate.from(watcher.GetCertificate)
	for _, kind := range []client.Object{&v1alpha1.FencedLease{}, &coordinationv1.Lease{}} {
		if _, err := s.mgr.GetCache().GetInformer(ctx, kind); err != nil {
			return fmt.Errorf("the watch of %T did not start: %w", kind, err)
		}
	}
	if err := s.watchConfigurations(ctx); err != nil {
		return err
	}
	register(s.mgr, s.live, s.options.Operator, s.options.Draining)
	s.started.Store(true)
	return nil
}

// watchConfigurations is for readiness and for the choice of a certificate: nothing
// waits for these watches here. Where the right to them is missing, both do without. Webhooks that answer
// are worth more than a check of them.
func (s *Server) watchConfigurations(ctx context.Context) error {
	for kind, list := range map[client.Object]client.ObjectList{
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   &admissionregistrationv1.MutatingWebhookConfigurationList{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: &admissionregistrationv1.ValidatingWebhookConfigurationList{},
	} {
		if err := s.list(ctx, list); apierrors.IsForbidden(err) {
			ctrl.Log.Info("readiness does not compare the certificate with the webhook configurations: the rights to list and watch them are missing",
				"reason", err.Error())
			return nil
		}
		if _, err := s.mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("the watch of %T did not start: %w", kind, err)
		}
	}
	s.readiness.watch(s.mgr.GetCache())
	s.options.Certificate.watch(s.mgr.GetCache())
	return nil
}

// list asks the API server for our configuration of a kind, for the right's sake.
func (s *Server) list(ctx context.Context, list client.ObjectList) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return s.live.List(ctx, list, client.MatchingFields{"metadata.name": configurations})
}

func (s *Server) certificateFiles() (certificate, key string) {
	return filepath.Join(s.options.CertDir, "tls.crt"), filepath.Join(s.options.CertDir, "tls.key")
}

// awaitCertificate returns false if the context ended first.
func (s *Server) awaitCertificate(ctx context.Context) bool {
	ticker := time.NewTicker(certificatePoll)
	defer ticker.Stop()
	for said := false; ; {
		_, err := tls.LoadX509KeyPair(s.certificateFiles())
		if err == nil {
			return true
		}
		if !said {
			ctrl.Log.Info("the webhooks wait for their certificate", "directory", s.options.CertDir, "reason", err.Error())
			said = true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// Ready is a readiness check: nil while the webhooks serve, the API server would
// trust them, and this replica is not about to end.
func (s *Server) Ready(req *http.Request) error {
	err := s.ready(req.Context())
	s.say(err)
	return err
}

func (s *Server) ready(ctx context.Context) error {
	if s.options.Draining.begun.Load() {
		return errDraining
	}
	if !s.started.Load() {
		return errors.New("the webhooks wait for their certificate or for the watches")
	}
	return s.readiness.check(ctx)
}

// say logs why the replica is not ready whenever that changes: /readyz withholds it.
func (s *Server) say(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why == s.said {
		return
	}
	s.said = why
	if why == "" {
		ctrl.Log.Info("ready")
	} else {
		ctrl.Log.Info("not ready", "reason", why)
	}
}
