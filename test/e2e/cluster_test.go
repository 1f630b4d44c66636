package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// nextVersion is that of the chart that the installation is upgraded to.
const nextVersion = "v0.2.0"

// nextChart is a copy of the chart as a next version may be: another image, and a new
// field in the CRD.
func nextChart(t *testing.T) string {
	t.Helper()
	next := filepath.Join(t.TempDir(), "fencedlease")
	if err := os.CopyFS(next, os.DirFS(filepath.Join(root, "charts", "fencedlease"))); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(next, "Chart.yaml"), "version: 0.1.0\nappVersion: v0.1.0\n", "version: 0.2.0\nappVersion: "+nextVersion+"\n")
	edit(t, filepath.Join(next, "templates", "zz_generated.crd.yaml"), "\n              leaseName:\n",
		"\n              note:\n                type: string\n                maxLength: 64\n              leaseName:\n")
	return next
}

// edit replaces a text that has to be there once.
func edit(t *testing.T, file, old, with string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), old); n != 1 {
		t.Fatalf("%s has %q %d times", file, old, n)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), old, with, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// noted tries a dry run with the new field.
func noted(t *testing.T, namespace string) (string, error) {
	t.Helper()
	return tryShell(t, "kubectl apply --validate=strict --server-side --dry-run=server --filename=- <<'EOF'\n"+
		"{apiVersion: fencedlease.io/v1alpha1, kind: FencedLease, metadata: {name: noted, namespace: "+namespace+"}, spec: {note: hello}}\nEOF\n")
}

// replicasServe is the authority that all replicas serve a certificate of; empty if
// that is not so, or another than that in the Secret.
func replicasServe(w *suite.World) string {
	w.T.Helper()
	secret := &corev1.Secret{}
	w.Must(w.Admin.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "fencedlease-webhook-cert"}, secret))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	pods := &corev1.PodList{}
	w.Must(w.Admin.List(w.Ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "fencedlease"}))
	for i := range pods.Items {
		dialer := &tls.Dialer{
			NetDialer: &net.Dialer{Timeout: 2 * time.Second},
			Config:    &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: "fencedlease-webhook." + namespace + ".svc"},
		}
		conn, err := dialer.DialContext(w.Ctx, "tcp", net.JoinHostPort(pods.Items[i].Status.PodIP, "9443"))
		if err != nil {
			return ""
		}
		_ = conn.Close()
	}
	return string(secret.Data["ca.crt"])
}

// trusted is an error unless all webhooks trust this.
func trusted(w *suite.World, bundle string) error {
	w.T.Helper()
	found := strings.Fields(shell(w.T, "kubectl get mutatingwebhookconfiguration/fencedlease validatingwebhookconfiguration/fencedlease --output "+
		`jsonpath='{range .items[*].webhooks[*]}{.clientConfig.caBundle}{"\n"}{end}'`))
	if len(found) != 5 {
		return fmt.Errorf("%d webhooks have an authority", len(found))
	}
	for _, encoded := range found {
		if encoded != base64.StdEncoding.EncodeToString([]byte(bundle)) {
			return errors.New("a webhook trusts something else")
		}
	}
	return nil
}

// kept is what an uninstallation leaves: the CRD, and what the API server itself makes
// of it.
var kept = []string{"CustomResourceDefinition /fencedleases.fencedlease.io", "APIService /v1alpha1.fencedlease.io"}

// everything is all that there is in the cluster, but what comes and goes by itself:
// Events, and what belongs to the namespaces of the tests.
func everything(t *testing.T) []string {
	t.Helper()
	kinds := strings.Fields(shell(t, "kubectl api-resources --verbs=list --output=name"))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool {
		return strings.HasPrefix(kind, "events") || kind == "componentstatuses"
	})
	all := shell(t, "kubectl get "+strings.Join(kinds, ",")+" --all-namespaces --ignore-not-found --output "+
		`jsonpath='{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}'`)
	var found []string
	for line := range strings.Lines(all) {
		if !strings.Contains(line, "/installation-") && !strings.Contains(line, " installation-") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// onlyAdded is an error unless there is what there was, and this.
func onlyAdded(t *testing.T, before, added []string) error {
	t.Helper()
	var errs []error
	expected := map[string]bool{
		// The namespace is its owner's, as are those things that every namespace has.
		"Namespace /" + namespace: true, "ConfigMap " + namespace + "/kube-root-ca.crt": true, "ServiceAccount " + namespace + "/default": true,
	}
	for _, object := range slices.Concat(before, added) {
		expected[object] = true
	}
	now := everything(t)
	for _, object := range now {
		if !expected[object] {
			errs = append(errs, errors.New("left: "+object))
		}
	}
	for _, object := range slices.Concat(before, added) {
		if !slices.Contains(now, object) {
			errs = append(errs, errors.New("gone: "+object))
		}
	}
	return errors.Join(errs...)
}

// logs are the last words of everybody, for whoever looks into a failure.
func logs(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	said, err := tryShell(t, "kubectl get pods --all-namespaces --output wide; kubectl get events --namespace "+namespace+" --sort-by .metadata.creationTimestamp | tail -20")
	fmt.Fprintln(&text, said, err)
	files, _ := filepath.Glob(filepath.Join(podsDir(), "*.log"))
	for _, file := range append(files, filepath.Join(plane.Dir, "test-node.log")) {
		data, err := os.ReadFile(file)
		lines := strings.Split(string(data), "\n")
		fmt.Fprintf(&text, "--- %s %v\n%s\n", filepath.Base(file), err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	return text.String()
}

// kubectlDir is where kubectl is.
func kubectlDir() (string, error) {
	kubectl, err := cluster.Asset("kubectl")
	return filepath.Dir(kubectl), err
}
