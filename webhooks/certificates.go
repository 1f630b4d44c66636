package webhooks

import (
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Names in config/ that certificate rotation writes to.
const (
	configurations = "fencedlease" // both webhook configurations
	certSecret     = "fencedlease-webhook-cert"
	certService    = "fencedlease-webhook"
	certFieldOwner = "fencedlease-cert-rotation"
)

// Rotation is what certificate rotation needs to know.
type Rotation struct {
	Namespace string // the operator's own
	CertDir   string // where the Secret is mounted
	DNSName   string // in the certificate; "" for that of the Service

	// OneReplica leaves rotation to the replica that leads: two would rotate
	// against each other.
	OneReplica bool
}

// CertificateSecret is where rotation keeps certificate and authority.
func CertificateSecret(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: certSecret}
}

// AddRotation makes the serving certificate, keeps it in a Secret, replaces it
// before it ends, and keeps its CA in the webhook configurations.
func AddRotation(mgr manager.Manager, r Rotation) error {
	if r.DNSName == "" {
		r.DNSName = certService + "." + r.Namespace + ".svc"
	}
	secret := CertificateSecret(r.Namespace)
	if err := addAuthority(mgr, secret, r.OneReplica); err != nil {
		return err
	}
	return rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:             secret,
		CertDir:               r.CertDir,
		CAName:                "fencedlease-ca",
		CAOrganization:        "fencedlease",
		DNSName:               r.DNSName,
		IsReady:               make(chan struct{}),
		RequireLeaderElection: r.OneReplica,
		// No Webhooks: it would have them trust the new authority only, at once.
	})
}
