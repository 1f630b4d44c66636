package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestSchemaRefuses: a value that cannot work is refused before anything is
// rendered, with a message that says where it is and what may be there.
func TestSchemaRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ set, says string }{
		"an unknown key":               {"replica=3", "additional properties 'replica' not allowed"},
		"an unknown key further down":  {"image.name=x", "at '/image': additional properties 'name' not allowed"},
		"and in a list":                {"extraEnv[0].nam=x", "at '/extraEnv/0': additional properties 'nam' not allowed"},
		"failurePolicy":                {"webhooks.failurePolicy=Ignore", "at '/webhooks': additional properties 'failurePolicy' not allowed"},
		"a host's network":             {"hostNetwork=true", "additional properties 'hostNetwork' not allowed"},
		"a word for a number":          {"replicas=two", "at '/replicas': got string, want integer"},
		"a word for a boolean":         {"crds.keep=maybe", "at '/crds/keep': got string, want boolean"},
		"a list for a map":             {"nodeSelector={a}", "at '/nodeSelector': got array, want object"},
		"a number for a label":         {"commonLabels.a=1", "at '/commonLabels/a': got number, want string"},
		"no replica":                   {"replicas=0", "at '/replicas': minimum: got 0, want 1"},
		"half a replica":               {"replicas=1.5", "at '/replicas': got string, want integer"},
		"a timeout too short":          {"webhooks.timeoutSeconds=1", "at '/webhooks/timeoutSeconds': minimum: got 1, want 2"},
		"a timeout too long":           {"webhooks.timeoutSeconds=6", "at '/webhooks/timeoutSeconds': maximum: got 6, want 5"},
		"a port that is none":          {"networkPolicy.apiServerPorts={70000}", "maximum: got 70,000, want 65,535"},
		"no port at all":               {"networkPolicy.apiServerPorts=null,networkPolicy.apiServerPorts=", "at '/networkPolicy/apiServerPorts'"},
		"another mode of certificates": {"certificates.mode=vault", "value must be one of 'self', 'certManager'"},
		"a label that is none":         {"prometheusRule.additionalLabels.a-b=x", "at '/prometheusRule/additionalLabels': additional properties 'a-b' not allowed"},
		"a runbook that is nowhere":    {"prometheusRule.runbookURL=docs", "at '/prometheusRule/runbookURL'"},
		"a runbook that breaks JSON":   {`prometheusRule.runbookURL=https://x/"`, "at '/prometheusRule/runbookURL'"},
		"a number for a label of ours": {"dashboard.labels.grafana_dashboard=1", "at '/dashboard/labels/grafana_dashboard': got number, want string"},
		"a digest that is none":        {"image.digest=sha256:abc", "at '/image/digest'"},
		"a log level that is none":     {"logLevel=loud", "at '/logLevel'"},
		"an argument that is none":     {"extraArgs={debug}", "at '/extraArgs/0'"},
		"a namespace that is none":     {"check.namespace=A_B", "at '/check/namespace'"},
		"an object without a kind":     {"extraObjects[0].apiVersion=v1", "at '/extraObjects/0': missing properties 'kind', 'metadata'"},
		"seconds of a certificate":     {"certificates.certManager.duration=90d", "at '/certificates/certManager/duration'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := template(t, "--set="+tc.set)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("the message lacks %q: %v", tc.says, err)
			}
		})
	}
}

// change is another value for a key of values.yaml.
type change struct {
	to   string   // JSON
	with []string // arguments without which the key has no effect
}

// changes has another value for each key of values.yaml. None is without effect.
var changes = map[string]change{
	"replicas":          {to: `3`},
	"image.repository":  {to: `"registry:5000/fencedlease"`},
	"image.tag":         {to: `"v9"`},
	"image.digest":      {to: `"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`},
	"image.pullPolicy":  {to: `"Never"`},
	"imagePullSecrets":  {to: `[{"name":"pull"}]`},
	"crds.enabled":      {to: `false`},
	"crds.keep":         {to: `false`},
	"certificates.mode": {to: `"certManager"`},
	"certificates.certManager.issuerRef.name": {to: `"corp"`, with: []string{"--set=certificates.mode=certManager"}},
	"certificates.certManager.issuerRef.kind": {to: `"ClusterIssuer"`, with: []string{"--set=certificates.mode=certManager,certificates.certManager.issuerRef.name=corp"}},
	"certificates.certManager.issuerRef.group": {
		to: `"issuers.example.com"`, with: []string{"--set=certificates.mode=certManager,certificates.certManager.issuerRef.name=corp"},
	},
	"certificates.certManager.duration":    {to: `"48h"`, with: []string{"--set=certificates.mode=certManager"}},
	"certificates.certManager.renewBefore": {to: `"1h"`, with: []string{"--set=certificates.mode=certManager"}},
	"webhooks.timeoutSeconds":              {to: `2`},
	"rbac.aggregate":                       {to: `false`},
	"check.enabled":                        {to: `false`},
	"check.namespace":                      {to: `"prod"`},
	"check.timeoutSeconds":                 {to: `60`},
	"check.resources.requests.cpu":         {to: `"20m"`},
	"check.resources.requests.memory":      {to: `"20Mi"`},
	"check.resources.limits.memory":        {to: `"200Mi"`},
	"serviceAccount.annotations":           {to: `{"a":"b"}`},
	"logLevel":                             {to: `3`},
	"resources.requests.cpu":               {to: `1`},
	"resources.requests.memory":            {to: `"1Gi"`},
	"resources.limits.memory":              {to: `"1Gi"`},
	"priorityClassName":                    {to: `"high"`},
	"topologySpread.zone":                  {to: `"DoNotSchedule"`},
	"topologySpread.hostname":              {to: `"DoNotSchedule"`},
	"nodeSelector":                         {to: `{"disk":"ssd"}`},
	"tolerations":                          {to: `[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}]`},
	"affinity":                             {to: `{"nodeAffinity":{}}`},
	"podLabels":                            {to: `{"a":"b"}`},
	"podAnnotations":                       {to: `{"a":"b"}`},
	"dnsPolicy":                            {to: `"Default"`},
	"terminationGracePeriodSeconds":        {to: `60`},
	"revisionHistoryLimit":                 {to: `0`},
	"networkPolicy.enabled":                {to: `true`},
	"networkPolicy.metricsFrom":            {to: `[{"podSelector":{}}]`, with: []string{"--set=networkPolicy.enabled=true"}},
	"networkPolicy.apiServerPorts":         {to: `[8443]`, with: []string{"--set=networkPolicy.enabled=true"}},
	"serviceMonitor.enabled":               {to: `true`},
	"serviceMonitor.interval":              {to: `"1m30s"`, with: []string{"--set=serviceMonitor.enabled=true"}},
	"serviceMonitor.scrapeTimeout":         {to: `"5s"`, with: []string{"--set=serviceMonitor.enabled=true"}},
	"serviceMonitor.labels":                {to: `{"a":"b"}`, with: []string{"--set=serviceMonitor.enabled=true"}},
	"prometheusRule.enabled":               {to: `true`},
	"prometheusRule.labels":                {to: `{"a":"b"}`, with: []string{"--set=prometheusRule.enabled=true"}},
	"prometheusRule.additionalLabels":      {to: `{"a":"b"}`, with: []string{"--set=prometheusRule.enabled=true"}},
	"prometheusRule.runbookURL":            {to: `"https://runbooks.example.com"`, with: []string{"--set=prometheusRule.enabled=true"}},
	"dashboard.enabled":                    {to: `true`},
	"dashboard.labels.grafana_dashboard":   {to: `"2"`, with: []string{"--set=dashboard.enabled=true"}},
	"dashboard.annotations":                {to: `{"a":"b"}`, with: []string{"--set=dashboard.enabled=true"}},
	"commonLabels":                         {to: `{"a":"b"}`},
	"commonAnnotations":                    {to: `{"a":"b"}`},
	"extraArgs":                            {to: `["--leader-elect=false"]`},
	"extraEnv":                             {to: `[{"name":"A","value":"b"}]`},
	"extraVolumes":                         {to: `[{"name":"tmp","emptyDir":{}}]`},
	"extraVolumeMounts":                    {to: `[{"name":"tmp","mountPath":"/tmp"}]`},
	"extraObjects":                         {to: `[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]`},
}

// TestEveryValueIsUsed: the schema accepts another value for each key, and what is
// rendered is another.
func TestEveryValueIsUsed(t *testing.T) {
	keys := leaves(t)
	for _, key := range keys {
		c, ok := changes[key]
		if !ok {
			t.Errorf("no other value for %s", key)
			continue
		}
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			before, err := template(t, c.with...)
			if err != nil {
				t.Fatal(err)
			}
			after, err := template(t, append(slices.Clone(c.with), "--set-json="+key+"="+c.to)...)
			if err != nil {
				t.Fatal(err)
			}
			if before == after {
				t.Errorf("%s changes nothing", c.to)
			}
		})
	}
	for key := range changes {
		if !slices.Contains(keys, key) {
			t.Errorf("values.yaml has no %s", key)
		}
	}
}

// TestEveryValueIsExplained in the README.
func TestEveryValueIsExplained(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chartDir(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	for _, key := range leaves(t) {
		explained := false
		for key := key; key != "" && !explained; key = key[:max(0, strings.LastIndex(key, "."))] {
			_, row, found := strings.Cut(readme, "\n| "+key+" |")
			row, _, _ = strings.Cut(row, "\n")
			cells := strings.Split(strings.TrimSuffix(row, "|"), "|")
			explained = found && len(strings.TrimSpace(cells[len(cells)-1])) > 5
		}
		if !explained {
			t.Errorf("%s is not explained", key)
		}
	}
}

// leaves are the keys of values.yaml that have a value, a list or an empty map.
func leaves(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir(t), "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	var keys []string
	var walk func(prefix string, values map[string]any)
	walk = func(prefix string, values map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if below, ok := values[key].(map[string]any); ok && len(below) > 0 {
				walk(prefix+key+".", below)
			} else {
				keys = append(keys, prefix+key)
			}
		}
	}
	walk("", values)
	return keys
}

// open are the places in the schema where any key may be, since they are Kubernetes's
// own, or not the chart's at all: the API server checks them.
var open = []string{
	"/global",
	"/affinity/nodeAffinity", "/affinity/podAffinity", "/affinity/podAntiAffinity",
	"/extraEnv/valueFrom", "/extraObjects", "/extraVolumes",
	"/networkPolicy/metricsFrom/ipBlock", "/networkPolicy/metricsFrom/namespaceSelector", "/networkPolicy/metricsFrom/podSelector",
}

// TestSchemaIsClosed: no object takes a key that the schema does not name, but those
// that are maps of strings, and the places above.
func TestSchemaIsClosed(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chartDir(t), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	var found []string
	var walk func(path string, schema map[string]any)
	walk = func(path string, schema map[string]any) {
		if schema["type"] == "object" {
			switch additional := schema["additionalProperties"].(type) {
			case bool:
				if additional {
					t.Errorf("%s takes any key", path)
				}
			case map[string]any: // a map: what may be in it is said
			default:
				found = append(found, path)
			}
		}
		if properties, ok := schema["properties"].(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				if below, ok := properties[name].(map[string]any); ok {
					walk(path+"/"+name, below)
				}
			}
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(path, items)
		}
	}
	walk("", schema)
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(open)); !slices.Equal(found, want) {
		t.Errorf("any key may be in %q, want %q", found, want)
	}
}
