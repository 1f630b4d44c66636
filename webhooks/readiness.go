package webhooks

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// readinessTimeout is about what a kubelet waits for an answer.
	readinessTimeout = time.Second

	// readinessAge is for how long an answer stands: anybody may probe, as often as
	// they like, and each look is a handshake.
	readinessAge = 500 * time.Millisecond
)

// readiness says whether the API server would trust the webhooks of this replica. It
// dials their own listener as the API server does, and proves the certificate that
// is actually served by the authorities that are actually registered.
type readiness struct {
	address string // of the listener

	// configurations has the webhook configurations from a watch. So a probe reads
	// nothing, and while the API server cannot be reached, what was last known
	// stands: a replica that works does not become unready for that. One that has
	// just started knows nothing yet, and is not ready until it does. Nil where the
	// right to watch them is missing: then only the certificate's own end counts.
	configurations client.Reader

	// ownAuthority says that the manager makes the certificate and registers its
	// authority: until then, nobody can trust it. The certificate of somebody else
	// may go without a caBundle: the API server then has roots of its own, which
	// cannot be seen from here.
	ownAuthority bool

	now func() time.Time

	mu   sync.Mutex
	at   time.Time
	last error
}

// check is nil if the API server would trust what is served; else the error says
// what does not fit.
func (r *readiness) check(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := r.now().Sub(r.at); age < 0 || age >= readinessAge {
		r.last = r.look(ctx)
		r.at = r.now()
	}
	return r.last
}

// watch sets where the webhook configurations come from.
func (r *readiness) watch(from client.Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configurations = from
}

func (r *readiness) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readinessTimeout)
	defer cancel()
	callers, err := callersOf(ctx, r.configurations)
	if err != nil {
		return fmt.Errorf("the webhook configurations are not known yet: %w", err)
	}
	if len(callers) == 0 { // nobody calls, as far as is known
		callers = []caller{{}}
	}
	for _, c := range callers {
		if err := r.dial(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// dial shakes hands with the listener as the API server would.
func (r *readiness) dial(ctx context.Context, as caller) error {
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: cmp.Or(as.host, "localhost"), Time: r.now}
	if as.bundle != "" || as.configuration == "" || r.ownAuthority {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(as.bundle))
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", r.address)
	if err == nil {
		return conn.Close()
	}
	var untrusted *tls.CertificateVerificationError
	if !errors.As(err, &untrusted) {
		return fmt.Errorf("the webhooks do not answer at %s: %w", r.address, err)
	}
	return r.judge(as, untrusted)
}

// judge says what does not fit about a certificate that was not verified.
func (r *readiness) judge(as caller, untrusted *tls.CertificateVerificationError) error {
	served := untrusted.UnverifiedCertificates[0]
	if end := served.NotAfter; r.now().After(end) {
		return fmt.Errorf("the certificate that is served ended at %s", end.UTC().Format(time.RFC3339))
	}
	if as.configuration == "" {
		return nil
	}
	var unknown x509.UnknownAuthorityError
	switch {
	case as.bundle == "" && r.ownAuthority:
		return fmt.Errorf("the caBundle of the %s is empty: certificate rotation has not registered its authority yet", as.configuration)
	case as.bundle == "" && errors.As(untrusted, &unknown):
		return nil // see ownAuthority
	}
	return fmt.Errorf("the certificate that is served does not fit the %s, which calls %s: %w", as.configuration, as.host, untrusted.Err)
}
