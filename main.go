// The FencedLease manager: controllers on the replica that leads, webhooks on
// every replica. This file only wires.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/controllers"
	"github.com/fencedlease/fencedlease/webhooks"
)

// name is that of the election Lease, of the webhook configurations and of the
// source of Events.
const name = "fencedlease"

// shutdownTimeout bounds the end of everything after the shutdown delay. The two
// together are less than the grace period of the Pod in config/manager.
const shutdownTimeout = 15 * time.Second

type options struct {
	namespace      string
	webhookHost    string
	webhookPort    int
	webhookCertDir string
	webhookDNSName string
	certRotation   bool
	metricsAddress string
	probeAddress   string
	leaderElect    bool
	shutdownDelay  time.Duration
}

func (o *options) bind(fs *flag.FlagSet) {
	fs.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "The operator's own `namespace`. Defaults to $POD_NAMESPACE.")
	fs.StringVar(&o.webhookHost, "webhook-host", "", "The `address` that the webhooks listen on. Defaults to all.")
	fs.IntVar(&o.webhookPort, "webhook-port", 9443, "The `port` that the webhooks listen on.")
	fs.StringVar(&o.webhookCertDir, "webhook-cert-dir", "/etc/fencedlease/certs", "The `directory` of tls.crt and tls.key, which are read again when they change.")
	fs.StringVar(&o.webhookDNSName, "webhook-dns-name", "", "The DNS `name` in the certificate that --cert-rotation makes. Defaults to fencedlease-webhook.<namespace>.svc.")
	fs.BoolVar(&o.certRotation, "cert-rotation", false, "Make and rotate the serving certificate in Secret fencedlease-webhook-cert, and keep the CA in the webhook configurations.")
	fs.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "The `address` of /metrics, or 0 for none.")
	fs.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "The `address` of /healthz and /readyz.")
	fs.BoolVar(&o.leaderElect, "leader-elect", true, "Run the controllers on one replica only. Webhooks serve on every replica.")
	fs.DurationVar(&o.shutdownDelay, "shutdown-delay", 10*time.Second, "The `time` between SIGTERM, from which on the replica is not ready, and its end. It must be longer than endpoints take to follow.")
}

func main() {
	var opts options
	opts.bind(flag.CommandLine)
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	signals := make(chan os.Signal, 3) // as many as are told apart
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	draining := webhooks.NewDraining(opts.shutdownDelay)
	if err := run(draining.Context(context.Background(), signals), opts, draining); err != nil {
		ctrl.Log.Error(err, "the manager ends")
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options, draining *webhooks.Draining) error {
	if opts.namespace == "" {
		return errors.New("the operator's own namespace is not known: set --namespace or POD_NAMESPACE")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no connection to an API server: %w", err)
	}
	config.QPS = -1 // the API server's priority and fairness is the limit, not a client's guess
	operator, err := whoAmI(ctx, config)
	if err != nil {
		return fmt.Errorf("cannot learn the operator's own user name: %w", err)
	}
	certificate := webhooks.NewServingCertificate()
	mgr, err := newManager(config, opts, certificate)
	if err != nil {
		return err
	}
	live, err := client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return err
	}
	if opts.certRotation {
		rotation := webhooks.Rotation{
			Namespace: opts.namespace, CertDir: opts.webhookCertDir, DNSName: opts.webhookDNSName, OneReplica: opts.leaderElect,
		}
		if err := webhooks.AddRotation(mgr, rotation); err != nil {
			return fmt.Errorf("cannot set up certificate rotation: %w", err)
		}
	}
	controller := &controllers.Reconciler{
		Client:    mgr.GetClient(),
		Live:      live,
		Events:    mgr.GetEventRecorder(name),
		Namespace: opts.namespace,
	}
	if err := controller.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	if opts.leaderElect {
		election := types.NamespacedName{Namespace: opts.namespace, Name: name}
		if err := mgr.Add(controllers.ElectionLease{Client: mgr.GetClient(), Key: election, Operator: operator}); err != nil {
			return err
		}
	}
	server := webhooks.NewServer(mgr, live, webhooks.Options{
		Operator:     operator.Username,
		CertDir:      opts.webhookCertDir,
		Certificate:  certificate,
		Address:      net.JoinHostPort(opts.webhookHost, strconv.Itoa(opts.webhookPort)),
		OwnAuthority: opts.certRotation,
		Draining:     draining,
	})
	if err := errors.Join(
		webhooks.RegisterMetrics(metrics.Registry),
		mgr.Add(server),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("webhooks", server.Ready),
	); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(config *rest.Config, opts options, certificate *webhooks.ServingCertificate) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	fenced, err := labels.NewRequirement(v1alpha1.LabelFencedBy, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			// Only fenced Leases are watched, not the heartbeats of nodes.
			&coordinationv1.Lease{}: {Label: labels.NewSelector().Add(*fenced)},
			// Only our own Secret.
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{opts.namespace: {}},
				Field:      fields.OneTermEqualSelector("metadata.name", webhooks.CertificateSecret(opts.namespace).Name),
			},
			// Only our own configurations, for readiness and certificate rotation.
			&admissionregistrationv1.MutatingWebhookConfiguration{}:   {Field: fields.OneTermEqualSelector("metadata.name", name)},
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
		}},
		LeaderElection:                opts.leaderElect,
		LeaderElectionID:              name,
		LeaderElectionNamespace:       opts.namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(shutdownTimeout),
		Metrics:                       metricsserver.Options{BindAddress: opts.metricsAddress},
		HealthProbeBindAddress:        opts.probeAddress,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host:    opts.webhookHost,
			Port:    opts.webhookPort,
			TLSOpts: []func(*tls.Config){certificate.Configure},
		}),
	})
}

// whoAmI is this program as the API server sees it (rule M4).
func whoAmI(ctx context.Context, config *rest.Config) (authenticationv1.UserInfo, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	review, err := clientset.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	if review.Status.UserInfo.Username == "" {
		return authenticationv1.UserInfo{}, errors.New("the API server's answer names no user")
	}
	return review.Status.UserInfo, nil
}
