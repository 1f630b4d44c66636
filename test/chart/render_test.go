package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	deployment = "Deployment/fencedlease"
	mutating   = "MutatingWebhookConfiguration/fencedlease"
	validating = "ValidatingWebhookConfiguration/fencedlease"
	crd        = "CustomResourceDefinition/fencedleases.fencedlease.io"
	job        = "Job/fencedlease-check"
	testPod    = "Pod/fencedlease-check-test"
	dashboard  = "ConfigMap/fencedlease-dashboard"

	pod       = "spec|template|spec|"
	container = pod + "containers|0|"
)

// nowhere is what is expected where there must be nothing.
type nowhere struct{}

// want is what is to be found in an object. Paths are separated by |.
type want struct {
	object, path string
	value        any
}

// TestTemplates: what each value makes of the objects.
func TestTemplates(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	certManager := []string{"--set=certificates.mode=certManager"}
	for name, tc := range map[string]struct {
		args   []string
		want   []want
		absent []string // objects
	}{
		"by default": {
			want: []want{
				{deployment, "spec|replicas", int64(2)},
				{deployment, "spec|strategy|rollingUpdate", map[string]any{"maxUnavailable": int64(0), "maxSurge": int64(1)}},
				{deployment, "metadata|namespace", namespace},
				{deployment, container + "image", "fencedlease:v0.1.0"},
				{deployment, pod + "priorityClassName", "system-cluster-critical"},
				{deployment, pod + "topologySpreadConstraints|0|topologyKey", "topology.kubernetes.io/zone"},
				{deployment, pod + "topologySpreadConstraints|1|topologyKey", "kubernetes.io/hostname"},
				{deployment, pod + "hostNetwork", nowhere{}},
				{deployment, pod + "automountServiceAccountToken", true},
				{deployment, pod + "imagePullSecrets", nowhere{}},
				{deployment, container + "securityContext|readOnlyRootFilesystem", true},
				{"ServiceAccount/fencedlease", "automountServiceAccountToken", false},
				{"PodDisruptionBudget/fencedlease", "spec|maxUnavailable", int64(1)},
				{"PodDisruptionBudget/fencedlease", "spec|unhealthyPodEvictionPolicy", "AlwaysAllow"},
				{crd, "metadata|annotations|helm.sh/resource-policy", "keep"},
				{mutating, "metadata|annotations", nowhere{}},
				{mutating, "webhooks|0|clientConfig|service", map[string]any{"name": "fencedlease-webhook", "namespace": namespace, "path": "/mint"}},
				{validating, "webhooks|2|namespaceSelector|matchExpressions|0|values", []any{namespace}},
				{"ClusterRoleBinding/fencedlease", "subjects|0|namespace", namespace},
				{"FlowSchema/fencedlease", "spec|rules|0|subjects|0|serviceAccount|namespace", namespace},
				{"Secret/fencedlease-webhook-cert", "data", nowhere{}},
				{job, "metadata|annotations|helm.sh/hook", "post-install,post-upgrade"},
				{job, container + "image", "fencedlease:v0.1.0"},
				{job, container + "command", []any{"/kubectl-fence"}},
				{testPod, "metadata|annotations|helm.sh/hook", "test"},
				{"Role/fencedlease-check", "metadata|namespace", "default"},
				{"Role/fencedlease-check", "metadata|annotations|helm.sh/hook", "post-install,post-upgrade,test"},
			},
			absent: []string{
				"Certificate/fencedlease-webhook", "NetworkPolicy/fencedlease", "ServiceMonitor/fencedlease", "Service/fencedlease-metrics",
				"PrometheusRule/fencedlease", dashboard,
			},
		},
		"one replica has no budget": {
			args:   []string{"--set=replicas=1"},
			want:   []want{{deployment, "spec|replicas", int64(1)}},
			absent: []string{"PodDisruptionBudget/fencedlease"},
		},
		"an image by tag": {
			args: []string{"--set=image.repository=registry:5000/team/fencedlease", "--set=image.tag=v9", "--set=image.pullPolicy=Always"},
			want: []want{
				{deployment, container + "image", "registry:5000/team/fencedlease:v9"},
				{deployment, container + "imagePullPolicy", "Always"},
				{job, container + "image", "registry:5000/team/fencedlease:v9"},
				{testPod, "spec|containers|0|imagePullPolicy", "Always"},
			},
		},
		"an image by digest, which wins": {
			args: []string{"--set=image.tag=v9", "--set=image.digest=" + digest},
			want: []want{
				{deployment, container + "image", "fencedlease@" + digest},
				{testPod, "spec|containers|0|image", "fencedlease@" + digest},
			},
		},
		"pull secrets": {
			args: []string{"--set=imagePullSecrets[0].name=pull"},
			want: []want{
				{deployment, pod + "imagePullSecrets|0|name", "pull"},
				{job, pod + "imagePullSecrets|0|name", "pull"},
			},
		},
		"no CRD": {
			args: []string{"--set=crds.enabled=false"}, absent: []string{crd},
		},
		"a CRD that goes with the release": {
			args: []string{"--set=crds.keep=false"},
			want: []want{
				{crd, "metadata|annotations|helm.sh/resource-policy", nowhere{}},
				{crd, "metadata|annotations|controller-gen.kubebuilder.io/version", "v0.23.0"},
			},
		},
		"cert-manager": {
			args: certManager,
			want: []want{
				{mutating, "metadata|annotations|cert-manager.io/inject-ca-from", namespace + "/fencedlease-webhook"},
				{validating, "metadata|annotations|cert-manager.io/inject-ca-from", namespace + "/fencedlease-webhook"},
				{"Certificate/fencedlease-webhook", "spec|secretName", "fencedlease-webhook-cert"},
				{"Certificate/fencedlease-webhook", "spec|dnsNames", []any{"fencedlease-webhook." + namespace + ".svc"}},
				{"Certificate/fencedlease-webhook", "spec|issuerRef|name", "fencedlease-ca"},
				{"Certificate/fencedlease-ca", "spec|isCA", true},
				{"Issuer/fencedlease-ca", "spec|ca|secretName", "fencedlease-ca"},
				{"Issuer/fencedlease-selfsigned", "spec", map[string]any{"selfSigned": map[string]any{}}},
				{deployment, pod + "volumes|0|secret|secretName", "fencedlease-webhook-cert"},
			},
			absent: []string{"Secret/fencedlease-webhook-cert"},
		},
		"cert-manager, with an issuer that is there": {
			args: append(certManager, "--set=certificates.certManager.issuerRef.name=corp", "--set=certificates.certManager.issuerRef.kind=ClusterIssuer"),
			want: []want{{"Certificate/fencedlease-webhook", "spec|issuerRef", map[string]any{"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "corp"}}},
			absent: []string{
				"Certificate/fencedlease-ca", "Issuer/fencedlease-ca", "Issuer/fencedlease-selfsigned", "Secret/fencedlease-webhook-cert",
			},
		},
		"a timeout": {
			args: []string{"--set=webhooks.timeoutSeconds=3"},
			want: []want{
				{mutating, "webhooks|0|timeoutSeconds", int64(3)}, {mutating, "webhooks|1|timeoutSeconds", int64(3)},
				{validating, "webhooks|0|timeoutSeconds", int64(3)}, {validating, "webhooks|1|timeoutSeconds", int64(3)},
				{validating, "webhooks|2|timeoutSeconds", int64(3)},
			},
		},
		"no roles for others": {
			args:   []string{"--set=rbac.aggregate=false"},
			absent: []string{"ClusterRole/fencedlease-view", "ClusterRole/fencedlease-edit"},
		},
		"no check, but a test": {
			args:   []string{"--set=check.enabled=false"},
			want:   []want{{"ServiceAccount/fencedlease-check", "metadata|annotations|helm.sh/hook", "test"}, {testPod, "spec|containers|0|command", []any{"/kubectl-fence"}}},
			absent: []string{job},
		},
		"a check elsewhere": {
			args: []string{"--set=check.namespace=prod", "--set=check.timeoutSeconds=60"},
			want: []want{
				{job, container + "args", []any{"check", "--installation-only", "--wait=60s", "--namespace=prod"}},
				{job, "spec|activeDeadlineSeconds", int64(120)},
				{"RoleBinding/fencedlease-check", "metadata|namespace", "prod"},
			},
		},
		"network policies": {
			args: []string{"--set=networkPolicy.enabled=true", "--set=networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=sre", "--set=networkPolicy.apiServerPorts={7443}"},
			want: []want{
				{"NetworkPolicy/fencedlease", "spec|ingress|0", map[string]any{"ports": []any{map[string]any{"port": "webhook"}}}},
				{"NetworkPolicy/fencedlease", "spec|ingress|1|from|0|namespaceSelector|matchLabels|team", "sre"},
				{"NetworkPolicy/fencedlease", "spec|egress|0|ports", []any{map[string]any{"port": int64(7443)}}},
				{"NetworkPolicy/fencedlease-check", "spec|ingress", nowhere{}},
			},
		},
		"a ServiceMonitor": {
			args: []string{"--set=serviceMonitor.enabled=true", "--set=serviceMonitor.scrapeTimeout=5s", "--set=serviceMonitor.labels.release=prometheus"},
			want: []want{
				{"ServiceMonitor/fencedlease", "spec|endpoints", []any{map[string]any{"port": "metrics", "interval": "30s", "scrapeTimeout": "5s"}}},
				{"ServiceMonitor/fencedlease", "metadata|labels|release", "prometheus"},
				{"Service/fencedlease-metrics", "spec|ports|0|targetPort", "metrics"},
				{"Service/fencedlease-metrics", "metadata|labels|app.kubernetes.io/component", "metrics"},
			},
		},
		"alerts": {
			args: []string{
				"--set=prometheusRule.enabled=true", "--set=prometheusRule.labels.release=prometheus", "--set=webhooks.timeoutSeconds=3",
				"--set=prometheusRule.additionalLabels.team=storage", "--set=prometheusRule.additionalLabels.severity=page",
				"--set=prometheusRule.runbookURL=https://runbooks.example.com/",
			},
			want: []want{
				{"PrometheusRule/fencedlease", "metadata|labels|release", "prometheus"},
				{"PrometheusRule/fencedlease", "spec|groups|0|rules|0|labels", map[string]any{"severity": "critical", "team": "storage"}},
				{"PrometheusRule/fencedlease", "spec|groups|0|rules|0|annotations|runbook_url", "https://runbooks.example.com/FencedLeaseWebhookDown.md"},
				{"PrometheusRule/fencedlease", "spec|groups|0|rules|2|expr", `kube_deployment_status_replicas_ready{deployment="fencedlease", namespace="` + namespace + `"} == 0` + "\n"},
				{"PrometheusRule/fencedlease", "spec|groups|0|rules|4|expr",
					"histogram_quantile(0.99, sum by (webhook, le) (rate(fencedlease_webhook_duration_seconds_bucket[5m])))\n> 1.5\n"},
			},
		},
		"a dashboard": {
			args: []string{"--set=dashboard.enabled=true", "--set=dashboard.annotations.grafana_folder=Platform"},
			want: []want{
				{dashboard, "metadata|namespace", namespace},
				{dashboard, "metadata|labels|grafana_dashboard", "1"},
				{dashboard, "metadata|annotations|grafana_folder", "Platform"},
			},
		},
		"a dashboard that another label selects": {
			args: []string{"--set=dashboard.enabled=true", "--set=dashboard.labels.grafana_dashboard=null", "--set=dashboard.labels.grafana=main"},
			want: []want{
				{dashboard, "metadata|labels|grafana_dashboard", nowhere{}},
				{dashboard, "metadata|labels|grafana", "main"},
				{dashboard, "metadata|annotations", nowhere{}},
			},
		},
		"extras": {
			args: []string{
				"--set=extraArgs={--webhook-port=8443}", "--set-json=extraEnv=[{\"name\":\"GODEBUG\",\"value\":\"x=1\"}]",
				"--set-json=extraVolumes=[{\"name\":\"tmp\",\"emptyDir\":{}}]", "--set-json=extraVolumeMounts=[{\"name\":\"tmp\",\"mountPath\":\"/tmp\"}]",
				"--set-json=extraObjects=[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"mine\"},\"data\":{\"a\":\"{{ not a template }}\"}}]",
			},
			want: []want{
				{deployment, container + "args|6", "--webhook-port=8443"},
				{deployment, container + "env|1|name", "GODEBUG"},
				{deployment, container + "env|0|name", "POD_NAMESPACE"},
				{deployment, pod + "volumes|1|name", "tmp"},
				{deployment, container + "volumeMounts|1|mountPath", "/tmp"},
				{"ConfigMap/mine", "data|a", "{{ not a template }}"},
			},
		},
		"placing the Pods": {
			args: []string{
				"--set=topologySpread.zone=DoNotSchedule", "--set=nodeSelector.disk=ssd", "--set=tolerations[0].operator=Exists",
				"--set-json=affinity={\"nodeAffinity\":{}}", "--set=podLabels.a=b", "--set=podAnnotations.c=d", "--set=priorityClassName=",
			},
			want: []want{
				{deployment, pod + "topologySpreadConstraints|0|whenUnsatisfiable", "DoNotSchedule"},
				{deployment, pod + "nodeSelector|disk", "ssd"},
				{deployment, pod + "tolerations|0|operator", "Exists"},
				{deployment, pod + "affinity|nodeAffinity", map[string]any{}},
				{deployment, "spec|template|metadata|labels|a", "b"},
				{deployment, "spec|template|metadata|annotations|c", "d"},
				{deployment, pod + "priorityClassName", nowhere{}},
				{job, pod + "nodeSelector|disk", "ssd"},
			},
		},
		"labels that would break the selectors": {
			args: []string{"--set=commonLabels.app\\.kubernetes\\.io/name=mine", "--set=podLabels.app\\.kubernetes\\.io/name=mine"},
			want: []want{
				{deployment, "spec|selector|matchLabels|app.kubernetes.io/name", "fencedlease"},
				{deployment, "spec|template|metadata|labels|app.kubernetes.io/name", "fencedlease"},
				{job, "spec|template|metadata|labels|app.kubernetes.io/name", "fencedlease-check"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := render(t, tc.args...)
			for _, w := range tc.want {
				value := field(got.get(t, w.object), w.path)
				if value == nil {
					value = nowhere{}
				}
				if diff := cmp.Diff(w.value, value); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", w.object, w.path, diff)
				}
			}
			for _, key := range tc.absent {
				if got[key] != nil {
					t.Errorf("there is a %s", key)
				}
			}
		})
	}
}

// TestRightsWithCertManager: the manager may neither touch Secrets nor write webhook
// configurations, whose authority it compares with the certificate that it serves, and
// is not told to.
func TestRightsWithCertManager(t *testing.T) {
	got := render(t, "--set=certificates.mode=certManager")
	for _, role := range []string{"ClusterRole/fencedlease", "Role/fencedlease"} {
		for _, rule := range rulesOf(t, got.get(t, role)) {
			writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" })
			if slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") && writes {
				t.Errorf("%s has %+v", role, rule)
			}
		}
	}
	if args := arguments(t, got); slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "cert-rotation") }) {
		t.Errorf("arguments %q", args)
	}
}

// everything are values with which everything is rendered that there is.
var everything = []string{
	"--set=networkPolicy.enabled=true", "--set=serviceMonitor.enabled=true", "--set=prometheusRule.enabled=true", "--set=dashboard.enabled=true",
	"--set=certificates.mode=certManager",
}

// TestCommonLabelsAndAnnotations: they are on every object, and on what makes Pods.
func TestCommonLabelsAndAnnotations(t *testing.T) {
	common := []string{"--set=commonLabels.team=storage", "--set=commonAnnotations.owner=storage"}
	for name, args := range map[string][]string{"by default": common, "everything": append(common, everything...)} {
		for key, object := range render(t, args...) {
			metas := map[string]any{"": field(object, "metadata")}
			if template := field(object, "spec|template|metadata"); template != nil {
				metas[", its Pods"] = template
			}
			for which, meta := range metas {
				if field(meta, "labels|team") != "storage" || field(meta, "annotations|owner") != "storage" {
					t.Errorf("%s: %s%s has %v", name, key, which, meta)
				}
			}
		}
	}
}

// TestNothingIsFilledIn: what others write is not rendered, or every upgrade would
// fight over it.
func TestNothingIsFilledIn(t *testing.T) {
	for _, args := range [][]string{nil, everything} {
		for key, object := range render(t, args...) {
			if object.GetKind() == "Secret" && (object.Object["data"] != nil || object.Object["stringData"] != nil) {
				t.Errorf("%s has data", key)
			}
			webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
			for i := range webhooks {
				if field(webhooks[i], "clientConfig|caBundle") != nil {
					t.Errorf("%s has a caBundle", key)
				}
				if field(webhooks[i], "failurePolicy") != "Fail" {
					t.Errorf("%s does not fail closed", key)
				}
			}
		}
	}
	for _, file := range chartFiles(t, "templates") {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range actions.FindAllString(string(source), -1) {
			if word := fickle.FindString(action); word != "" {
				t.Errorf("%s uses %s", filepath.Base(file), word)
			}
		}
	}
}

// actions are what a template evaluates, without its comments; fickle are functions
// with another result each time, or in each cluster.
var (
	actions = regexp.MustCompile(`\{\{-? *[^ /*-][^}]*`)
	fickle  = regexp.MustCompile(`\b(gen[A-Z]\w+|lookup|rand\w+|uuidv4|now|getHostByName|htpasswd|bcrypt)\b`)
)

// TestTwoRendersAreIdentical, byte for byte.
func TestTwoRendersAreIdentical(t *testing.T) {
	for _, args := range [][]string{nil, everything} {
		first, err := template(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := template(t, args...); err != nil || first != second {
			t.Errorf("they differ (%v):\n%s", err, cmp.Diff(first, second))
		}
	}
}

// TestEveryRuleHasAReason: a comment over each rule of each role says which code
// needs it, and that code is there.
func TestEveryRuleHasAReason(t *testing.T) {
	text, err := template(t)
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for document := range strings.SplitSeq(text, "\n---\n") {
		_, list, ok := strings.Cut(document, "\nrules:\n")
		if !ok || !strings.Contains(document, "rbac.authorization.k8s.io/v1\nkind:") || strings.Contains(document, "/aggregate-to-") {
			continue
		}
		comment := ""
		for line := range strings.Lines(list) {
			switch {
			case strings.HasPrefix(line, "#"):
				comment += line
			case strings.HasPrefix(line, "- "):
				rules++
				needs := code.FindAllString(comment, -1)
				if len(needs) == 0 {
					t.Errorf("nothing says which code needs %sin\n%s", line, list)
				}
				for _, file := range needs {
					if _, err := os.Stat(path(t, strings.Split(file, "/")...)); err != nil {
						t.Errorf("what needs %sis not there: %v", line, err)
					}
				}
				comment = ""
			}
		}
	}
	if rules < 15 {
		t.Errorf("there are %d rules", rules)
	}
}

// code is what a comment names: a file, or the package of the controllers.
var code = regexp.MustCompile(`\b[\w/-]+\.go\b|\bcontrollers\b`)

// TestLint has no finding, not even a warning.
func TestLint(t *testing.T) {
	for _, args := range [][]string{nil, everything} {
		if out, err := helm(t.Context(), t, append([]string{"lint", "--strict", chartDir(t)}, args...)...); err != nil || strings.Contains(out, "WARNING") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// maxPackage is how large a package may be, in bytes: a release is kept in a Secret,
// which has a limit of 1 MiB, beside its values and manifest.
const maxPackage = 300_000

// TestPackage: it is small, and has what it needs and nothing else.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	if _, err := helm(t.Context(), t, "package", chartDir(t), "--destination="+dir); err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("%v, %v", packages, err)
	}
	info, err := os.Stat(packages[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s has %d bytes", info.Name(), info.Size())
	if info.Size() > maxPackage {
		t.Errorf("more than %d bytes", maxPackage)
	}
	fromDir, err := template(t)
	if err != nil {
		t.Fatal(err)
	}
	fromPackage, err := helm(t.Context(), t, "template", release, packages[0], "--namespace="+namespace)
	if err != nil || fromPackage != fromDir {
		t.Errorf("the package renders something else (%v)", err)
	}
}

// chartFiles are the files in a directory of the chart.
func chartFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(chartDir(t), dir), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	return files
}
