package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster/process"
	"github.com/fencedlease/fencedlease/test/suite"
)

// picturesVariable names the directory that the pictures of the dashboard go to. None
// are made without: `make pictures` sets it.
const picturesVariable = "FENCEDLEASE_PICTURES"

// prometheusAddress is in a network namespace that has nothing else.
const prometheusAddress = "127.0.0.1:9090"

const prometheusConfig = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%[1]s/charts/fencedlease/files/alerts.yaml]
scrape_configs:
- job_name: fencedlease
  file_sd_configs: [{files: [%[2]s/fencedlease.json], refresh_interval: 1s}]
- job_name: candidates
  file_sd_configs: [{files: [%[2]s/candidates.json], refresh_interval: 1s}]
- job_name: apiserver
  scheme: https
  tls_config: {ca_file: %[2]s/ca.crt, cert_file: %[2]s/client.crt, key_file: %[2]s/client.key}
  static_configs: [{targets: ["%[3]s"]}]
`

// pictures has a Prometheus that reads the metrics of everybody while the test runs.
type pictures struct {
	out, dir string
	begin    time.Time
}

// takePictures starts the Prometheus; it ends with the test.
func takePictures(t *testing.T) *pictures {
	t.Helper()
	p := &pictures{out: os.Getenv(picturesVariable), dir: filepath.Join(plane.Dir, "prometheus-files"), begin: time.Now()}
	server := strings.TrimSuffix(strings.TrimPrefix(plane.Admin.Host, "https://"), "/")
	for name, data := range map[string][]byte{
		"ca.crt": plane.Admin.CAData, "client.crt": plane.Admin.CertData, "client.key": plane.Admin.KeyData,
		"prometheus.yaml": fmt.Appendf(nil, prometheusConfig, root, p.dir, server),
	} {
		if err := os.MkdirAll(p.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	admin := suite.In(t, plane).Admin
	go func() { defer close(done); p.follow(ctx, admin) }()
	prometheus, err := process.Start(plane.Dir, "prometheus", filepath.Join(root, "bin", "tools", "prometheus"), filepath.Join(plane.Dir, "prometheus.log"),
		"--config.file="+filepath.Join(p.dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(p.dir, "data"), "--web.listen-address="+prometheusAddress)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-done
		if err := prometheus.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return p
}

// follow tells Prometheus which Pods there are, as the Prometheus operator does.
func (p *pictures) follow(ctx context.Context, admin client.Client) {
	for ctx.Err() == nil {
		for file, label := range map[string]client.MatchingLabels{
			"fencedlease.json": {"app.kubernetes.io/name": "fencedlease"}, "candidates.json": {"app": "accounts"},
		} {
			pods := &corev1.PodList{}
			if err := admin.List(ctx, pods, label); err != nil {
				continue // the next look is soon
			}
			targets := []map[string]any{}
			for i := range pods.Items {
				if pod := &pods.Items[i]; pod.Status.PodIP != "" && len(pod.Spec.Containers[0].Command) == 0 {
					targets = append(targets, map[string]any{
						"targets": []string{pod.Status.PodIP + ":8080"},
						"labels":  map[string]string{"pod": pod.Name, "namespace": pod.Namespace},
					})
				}
			}
			if data, err := json.Marshal(targets); err == nil {
				path := filepath.Join(p.dir, file)
				if os.WriteFile(path+".new", data, 0o600) == nil {
					_ = os.Rename(path+".new", path)
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// draw draws the dashboard with what there was since the beginning. No alert fires in
// so short a time but for information; and a candidate of examples/manager ends, with
// its metrics, when a write of its is refused.
func (p *pictures) draw(t *testing.T) {
	t.Helper()
	t.Log(shell(t, fmt.Sprintf("bin/tools/pictures --dashboard charts/fencedlease/files/dashboard.json --prometheus http://%s --from %d --out %s --allow-empty Alerts --allow-empty 'Writes refused to candidates'",
		prometheusAddress, p.begin.Unix(), p.out)))
}

// accounts are candidates with package leader: examples/manager.
const accounts = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: accounts
  namespace: %[1]s
spec:
  replicas: 2
  selector: {matchLabels: {app: accounts}}
  template:
    metadata: {labels: {app: accounts}}
    spec:
      containers:
      - name: accounts
        image: ` + accountsImage + `
        args: [-namespace=%[1]s]
`

// everythingElse does what the other steps do not, so that every panel has something
// to show: fenced leadership with package leader, writes without a token, dry runs,
// FencedLeases that only warn, break-glass, a fenced Lease that is deleted.
func everythingElse(t *testing.T) {
	w := suite.In(t, plane)
	w.FencedLease("payments")
	w.Guarded("account", "payments", w.Admin.Acquire("payments", "administrator"))
	w.Admin.Release("payments")
	out, err := plane.KubectlInput(w.Ctx, fmt.Sprintf(accounts, w.Namespace), "apply", "--filename=-")
	w.Must(err)
	if out.ExitCode != 0 {
		t.Fatal(out.Stderr)
	}
	w.AwaitToken("payments", 2)
	w.FencedLease("lenient", func(spec *v1alpha1.FencedLeaseSpec) { spec.Enforcement = v1alpha1.EnforcementWarn })
	w.Guarded("tried", "lenient", w.Admin.Acquire("lenient", "administrator"))
	for n := range 20 {
		for range 3 {
			suite.Refused(t, w.Admin.Modify("account", suite.Balance(strconv.Itoa(n+1))), 428, fence.ReasonRequired)
		}
		suite.Refused(t, client.NewDryRunClient(w.Admin).Patch(w.Ctx, w.GetConfigMap("account"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"balance":"7"}}`))), 428, fence.ReasonRequired)
		suite.Admitted(t, w.Admin.Modify("tried", suite.Balance(strconv.Itoa(n+1))))
		time.Sleep(500 * time.Millisecond)
	}
	suite.Admitted(t, w.Admin.Modify("account", suite.Balance("8"), suite.Annotation(v1alpha1.AnnotationBypass, "a picture of it")))
	if err := w.Admin.Delete(w.Ctx, w.Lease("payments")); err == nil {
		t.Error("a fenced Lease was deleted")
	}
	for range 2 {
		w.Admin.Acquire("payments", "somebody") // who does not renew: candidates wait for the end of it
		time.Sleep(20 * time.Second)
	}
}
