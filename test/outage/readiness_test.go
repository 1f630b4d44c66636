package outage

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// A replica is ready as long as the API server would trust what it serves, and says
// what does not fit. It stays ready while the API server is out of reach.
func TestReadyWhileTheAPIServerTrustsTheCertificate(t *testing.T) {
	w := suite.New(t)
	dir := t.TempDir()
	good := map[string][]byte{}
	for _, name := range []string{"tls.crt", "tls.key"} {
		data, err := os.ReadFile(filepath.Join(suite.Cluster.Dir, "webhook-certs", name))
		w.Must(err)
		good[name] = data
		write(filepath.Join(dir, name), data)
	}
	stranger, strangersKey, err := cert.GenerateSelfSignedCertKey("fencedlease-webhook", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	w.Must(err)
	way := w.Way()
	manager := runManager(w, cluster.ManagerOptions{
		APIServer: way.URL, ExtraArgs: []string{"--webhook-cert-dir=" + dir, "--leader-elect=false"},
	})
	ready := func(what string) {
		t.Helper()
		w.Eventually("ready: "+what, func() error { return manager.Ready(w.Ctx) })
	}
	unready := func(what, reason string) {
		t.Helper()
		w.Eventually("not ready: "+what, func() error {
			if manager.Ready(w.Ctx) == nil {
				return errors.New("it is ready")
			}
			if !strings.Contains(manager.Log(), reason) {
				return errors.New("the log does not say: " + reason)
			}
			return nil
		})
	}
	serve := func(certificate, key []byte) {
		write(filepath.Join(dir, "tls.key"), key)
		write(filepath.Join(dir, "tls.crt"), certificate)
	}

	// A certificate that nobody would trust is not served, while there is another.
	serve(stranger, strangersKey)
	w.Eventually("a new certificate waits", func() error {
		if err := manager.Ready(w.Ctx); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(manager.Log(), "the one before is served until") {
			return errors.New("nothing is said of it")
		}
		return nil
	})
	serve(good["tls.crt"], good["tls.key"])
	ready("the right one is back")

	// Neither certificate is proved by it.
	other, _, err := cert.GenerateSelfSignedCertKey("fencedlease-webhook", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	w.Must(err)
	register(w, other)
	unready("another authority is registered", "does not fit the ValidatingWebhookConfiguration fencedlease, which calls 127.0.0.1: x509")
	register(w, good["tls.crt"])
	ready("the right one is back")

	way.Cut()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := manager.Ready(w.Ctx); err != nil {
			t.Fatalf("not ready while the API server is out of reach: %v", err)
		}
	}
	way.Mend()

	families, err := manager.Metrics(w.Ctx)
	w.Must(err)
	served, err := cert.ParseCertsPEM(good["tls.crt"])
	w.Must(err)
	expiry := families["fencedlease_webhook_certificate_expiry_timestamp_seconds"].GetMetric()[0].GetGauge().GetValue()
	if expiry != float64(served[0].NotAfter.Unix()) {
		t.Errorf("the metric says that the certificate ends at %f, and it ends at %s", expiry, served[0].NotAfter)
	}
}

// Where the manager may not see the configurations, it is ready without, and says so
// once: a check is not worth the webhooks.
func TestReadyWithoutTheRightToWatchConfigurations(t *testing.T) {
	w := suite.New(t)
	w.Must(suite.Cluster.Install(w.Ctx, withoutRule("admissionregistration.k8s.io")))
	manager := runManager(w, cluster.ManagerOptions{}, func() { w.Must(suite.Cluster.Install(w.Ctx)) })
	if got := strings.Count(manager.Log(), "the rights to list and watch them are missing"); got != 1 {
		t.Errorf("it is said %d times in the log:\n%s", got, manager.Log())
	}
	if got := strings.Count(manager.Log(), "forbidden"); got != 1 {
		t.Errorf("%d requests were forbidden, want 1", got)
	}
}

// withoutRule takes the rules about an API group off the manager's role.
func withoutRule(group string) cluster.Patch {
	return func(object *unstructured.Unstructured) bool {
		if object.GetKind() != "ClusterRole" || object.GetName() != "fencedlease" {
			return true
		}
		rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
		object.Object["rules"] = slices.DeleteFunc(rules, func(rule any) bool {
			fields, _ := rule.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(fields, "apiGroups")
			return slices.Contains(groups, group)
		})
		return true
	}
}

// register has the validating webhooks trust another authority.
func register(w *suite.World, authority []byte) {
	w.T.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "fencedlease"}}
	w.Must(w.Admin.Get(w.Ctx, client.ObjectKeyFromObject(configuration), configuration))
	before := configuration.DeepCopy()
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = authority
	}
	w.Must(w.Admin.Patch(w.Ctx, configuration, client.MergeFrom(before)))
}
