package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// TestPromtool: Prometheus itself takes the rules, and they do what testdata says.
func TestPromtool(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", path(t, rulesFile))
	promtool(t, "test", "rules", "testdata/rules.yaml")
}

// promtool finds nothing wrong.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program := path(t, "bin", "tools", "promtool")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; `make bin/tools/promtool` builds it", err)
	}
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestEveryAlertHasATwin: for each severity of each alert there is a test in which
// it fires, and for each alert a whole test in which it does not.
func TestEveryAlertHasATwin(t *testing.T) {
	var file struct {
		Tests []struct {
			Checks []struct {
				Alert string `json:"alertname"`
				Want  []struct {
					Labels map[string]string `json:"exp_labels"`
				} `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	read(t, &file, "test", "alerts", "testdata", "rules.yaml")
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		fired := map[string]bool{}
		for _, check := range test.Checks {
			for _, want := range check.Want {
				fires[check.Alert+" "+want.Labels["severity"]] = true
				fired[check.Alert] = true
			}
		}
		for _, check := range test.Checks {
			silent[check.Alert] = silent[check.Alert] || !fired[check.Alert]
		}
	}
	for _, rule := range rules(t) {
		if !fires[rule.Alert+" "+rule.Labels["severity"]] {
			t.Errorf("no test has %s fire (%s)", rule.Alert, rule.Labels["severity"])
		}
		if !silent[rule.Alert] {
			t.Errorf("no test has %s not fire", rule.Alert)
		}
	}
}

// TestAlertsAreWhole: names, severities, and texts.
func TestAlertsAreWhole(t *testing.T) {
	for _, rule := range rules(t) {
		if !strings.HasPrefix(rule.Alert, "FencedLease") {
			t.Errorf("%s is not a name of ours", rule.Alert)
		}
		if severity := rule.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
			t.Errorf("%s has severity %q", rule.Alert, severity)
		}
		for _, annotation := range []string{"summary", "description"} {
			if !strings.HasSuffix(rule.Annotations[annotation], ".") {
				t.Errorf("%s: the %s is %q", rule.Alert, annotation, rule.Annotations[annotation])
			}
		}
		if url, want := rule.Annotations["runbook_url"], "/docs/runbooks/"+rule.Alert+".md"; !strings.HasSuffix(url, want) {
			t.Errorf("%s: the runbook is at %q, want …%s", rule.Alert, url, want)
		}
	}
}

// TestMetricsExist: whatever the alerts ask for is among our own metrics, with
// those labels, or among those few of others.
func TestMetricsExist(t *testing.T) {
	known := knownMetrics(t)
	for _, rule := range rules(t) {
		known.check(t, rule.Alert, rule.Expr)
	}
}

// metrics are names, each with its labels.
type metrics map[string][]string

// knownMetrics are our own, and those few of others.
func knownMetrics(t *testing.T) metrics {
	t.Helper()
	known := ourMetrics(t)
	for name, labels := range othersMetrics {
		known[name] = labels
	}
	return known
}

// check that all that an expression asks for is there.
func (known metrics) check(t *testing.T, who, expr string) {
	t.Helper()
	asked := selectors(expr)
	if len(asked) == 0 {
		t.Errorf("%s asks for no metric", who)
	}
	for _, s := range asked {
		labels, ok := known[s.metric]
		if !ok {
			t.Errorf("%s: there is no metric %s", who, s.metric)
			continue
		}
		for _, label := range s.labels {
			if !slices.Contains(labels, label) && !slices.Contains(targetLabels, label) {
				t.Errorf("%s: %s has no label %s, but %q", who, s.metric, label, labels)
			}
		}
	}
}

// targetLabels are those that Prometheus itself gives to whatever it reads.
var targetLabels = []string{"job", "namespace", "pod"}

// othersMetrics are those that alerts and dashboard may ask for beside our own, with
// their labels.
var othersMetrics = metrics{
	// The API server: k8s.io/apiserver/pkg/admission/metrics.
	"apiserver_admission_match_condition_evaluation_errors_total":   {"name", "kind", "type", "operation"},
	"apiserver_admission_match_condition_exclusions_total":          {"name", "kind", "type", "operation"},
	"apiserver_admission_webhook_admission_duration_seconds_bucket": {"name", "type", "operation", "rejected", "le"},
	"apiserver_admission_webhook_fail_open_count":                   {"name", "type"},
	"apiserver_admission_webhook_rejection_count":                   {"name", "type", "operation", "error_type", "rejection_code"},
	"apiserver_admission_webhook_request_total":                     {"name", "type", "operation", "code", "rejected"},
	// controller-runtime: pkg/internal/controller/metrics, pkg/internal/metrics, pkg/metrics.
	"controller_runtime_active_workers":                {"controller"},
	"controller_runtime_reconcile_errors_total":        {"controller"},
	"controller_runtime_reconcile_time_seconds_bucket": {"controller", "le"},
	"controller_runtime_reconcile_total":               {"controller", "result"},
	"leader_election_master_status":                    {"name"},
	"rest_client_requests_total":                       {"code", "method", "host"},
	"workqueue_depth":                                  {"name", "controller", "priority"},
	// client_golang: prometheus/process_collector.go.
	"process_cpu_seconds_total":     {},
	"process_resident_memory_bytes": {},
	// kube-state-metrics: docs/metrics/workload/deployment-metrics.md.
	"kube_deployment_status_replicas_ready": {"namespace", "deployment"},
	// Prometheus: documentation of alerting rules, and of jobs and instances.
	"ALERTS": {"alertname", "alertstate", "severity"},
	"up":     {},
}

// selector is a metric in an expression, with the labels that it is selected by.
type selector struct {
	metric string
	labels []string
}

// notMetrics are what has words in an expression that are neither metrics nor
// functions.
var notMetrics = []*regexp.Regexp{
	regexp.MustCompile(`"[^"]*"`),
	regexp.MustCompile(`\[[^]]*\]`),
	regexp.MustCompile(`\boffset \w+`),
	regexp.MustCompile(`\b(by|without|on|ignoring) *\([^)]*\)`),
	regexp.MustCompile(`\b(or|and|unless|sum|max|min)\b`),
}

var (
	// A word, and the parenthesis of a function or the matchers of a metric behind it.
	wordPattern  = regexp.MustCompile(`\b([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\(|\{[^}]*\})?`)
	labelPattern = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
)

// selectors are those of an expression.
func selectors(expr string) []selector {
	for _, pattern := range notMetrics {
		expr = pattern.ReplaceAllString(expr, " ")
	}
	var found []selector
	for _, word := range wordPattern.FindAllStringSubmatch(expr, -1) {
		if word[2] == "(" {
			continue
		}
		s := selector{metric: word[1]}
		for _, label := range labelPattern.FindAllStringSubmatch(word[2], -1) {
			s.labels = append(s.labels, label[1])
		}
		found = append(found, s)
	}
	return found
}

// TestSelectors: of an expression, its metrics are found, and nothing else.
func TestSelectors(t *testing.T) {
	const expr = `sum by (name) (rate(a_total{x="by (b)", y!~"{z=}"}[5m] offset 1h) > 0
		or (b unless c{} offset 15m)) / absent(d) - time() < 7 * 24 and e`
	want := []selector{{"a_total", []string{"x", "y"}}, {"b", nil}, {"c", nil}, {"d", nil}, {"e", nil}}
	if got := selectors(expr); !reflect.DeepEqual(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// ourMetrics are those in docs/metrics.md, which is generated from the code, with
// their labels.
func ourMetrics(t *testing.T) metrics {
	t.Helper()
	data, err := os.ReadFile(path(t, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := metrics{}
	for _, row := range metricPattern.FindAllStringSubmatch(string(data), -1) {
		name, kind := row[1], row[2]
		var labels []string
		for _, label := range codePattern.FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, label[1])
		}
		if kind == "histogram" {
			found[name+"_bucket"] = slices.Concat(labels, []string{"le"})
			found[name+"_sum"], found[name+"_count"] = labels, labels
			continue
		}
		found[name] = labels
	}
	if len(found) < 10 {
		t.Fatalf("docs/metrics.md has %d metrics", len(found))
	}
	return found
}

var (
	metricPattern = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]*) \\|")
	codePattern   = regexp.MustCompile("`(\\w+)`")
)

// rulesFile are the alerts.
const rulesFile = "charts/fencedlease/files/alerts.yaml"

// rule is an alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// rules are all alerts.
func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	read(t, &file, rulesFile)
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no alerts")
	}
	return all
}

// read a YAML file of the repository.
func read(t *testing.T, into any, elements ...string) {
	t.Helper()
	data, err := os.ReadFile(path(t, elements...))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// path is that of a file of the repository.
func path(t *testing.T, elements ...string) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root}, elements...)...)
}
