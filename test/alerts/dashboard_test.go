package alerts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	dashboardFile = "charts/fencedlease/files/dashboard.json"

	// columns are those of Grafana's grid.
	columns = 24
)

// dashboard is what the tests need of Grafana's JSON.
type dashboard struct {
	UID         string  `json:"uid"`
	Panels      []panel `json:"panels"`
	Annotations struct {
		List []target `json:"list"`
	} `json:"annotations"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Grid        struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets     []target `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit       string `json:"unit"`
			Thresholds struct {
				Steps []struct {
					Value *float64 `json:"value"`
				} `json:"steps"`
			} `json:"thresholds"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Links []struct {
		URL string `json:"url"`
	} `json:"links"`
}

type target struct {
	RefID      string `json:"refId"`
	Expr       string `json:"expr"`
	Datasource struct {
		UID string `json:"uid"`
	} `json:"datasource"`
}

// board is the dashboard; text is its file.
func board(t *testing.T) (d dashboard, text string) {
	t.Helper()
	data, err := os.ReadFile(path(t, dashboardFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 20 {
		t.Fatalf("there are %d panels", len(d.Panels))
	}
	return d, string(data)
}

// queries are all expressions, by where they are.
func (d dashboard) queries() map[string]string {
	found := map[string]string{}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			found[fmt.Sprintf("%s, query %s", panel.Title, target.RefID)] = target.Expr
		}
	}
	for i, annotation := range d.Annotations.List {
		if annotation.Expr != "" {
			found[fmt.Sprintf("annotation %d", i)] = annotation.Expr
		}
	}
	return found
}

// variable is how an expression refers to one.
var variable = regexp.MustCompile(`\$\{?([a-zA-Z_]\w*)\}?`)

// withoutVariables is an expression as Prometheus would get it.
func withoutVariables(expr string) string {
	return variable.ReplaceAllStringFunc(expr, func(name string) string {
		if strings.HasPrefix(name, "$__") {
			return "5m"
		}
		return "value"
	})
}

// TestDashboardQueries: each is PromQL, and asks for metrics that there are.
func TestDashboardQueries(t *testing.T) {
	d, _ := board(t)
	known := knownMetrics(t)
	var rules []map[string]string
	for where, expr := range d.queries() {
		expr = withoutVariables(expr)
		known.check(t, where, expr)
		rules = append(rules, map[string]string{"record": fmt.Sprintf("query_%d", len(rules)), "expr": expr})
	}
	data, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", file)
}

// grafanas are variables that Grafana has itself, and that we use.
var grafanas = []string{"__rate_interval", "__range", "__all", "__value"}

// TestDashboardVariables: each is used, each that is used is there, and those that
// list something list what is there.
func TestDashboardVariables(t *testing.T) {
	d, text := board(t)
	known := knownMetrics(t)
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
		if v.Definition == "" {
			continue
		}
		list := strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")")
		metric, label, ok := cutLast(list, ", ")
		if !ok {
			t.Errorf("%s lists %s", v.Name, v.Definition)
			continue
		}
		known.check(t, v.Name, withoutVariables(metric))
		known.check(t, v.Name, fmt.Sprintf("%s{%s=''}", metricName(metric), label))
	}
	used := map[string]bool{}
	for _, name := range variable.FindAllStringSubmatch(text, -1) {
		used[name[1]] = true
		if !slices.Contains(names, name[1]) && !slices.Contains(grafanas, name[1]) {
			t.Errorf("there is no variable %s", name[1])
		}
	}
	for _, name := range names {
		if !used[name] {
			t.Errorf("variable %s is not used", name)
		}
	}
}

// cutLast cuts around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// metricName is a selector without its matchers.
func metricName(selector string) string {
	name, _, _ := strings.Cut(selector, "{")
	return name
}

// TestPanelsAreWhole: each has what a reader needs who has not seen it before.
func TestPanelsAreWhole(t *testing.T) {
	d, _ := board(t)
	if d.UID != "fencedlease" {
		t.Errorf("the dashboard's uid is %q: links to it would break", d.UID)
	}
	ids, titles := map[int]bool{}, map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d, %q, is there twice", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Type == "row" {
			continue
		}
		if !slices.Contains([]string{"stat", "timeseries", "table", "heatmap"}, p.Type) {
			t.Errorf("%s is a %s", p.Title, p.Type)
		}
		parts := strings.Split(p.Description, "\n\n")
		if len(parts) != 3 || !strings.HasPrefix(parts[1], "Normal: ") || !strings.HasPrefix(parts[2], "If not: ") {
			t.Errorf("%s: its description does not say what it is, what is normal, and what to do if it is not: %q", p.Title, p.Description)
		}
		for _, part := range parts {
			if !strings.HasSuffix(part, ".") {
				t.Errorf("%s: %q has no end", p.Title, part)
			}
		}
		if p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%s has no unit", p.Title)
		}
		for i, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			if (step.Value == nil) != (i == 0) {
				t.Errorf("%s: only the first threshold has no value", p.Title)
			}
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.RefID == "" || target.Datasource.UID != "${datasource}" {
				t.Errorf("%s: query %q of %q", p.Title, target.RefID, target.Datasource.UID)
			}
			refs[target.RefID] = true
		}
		if len(refs) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
	}
}

// TestPanelsDoNotOverlap: each has a place of its own, in the order of the file, and
// no row is empty.
func TestPanelsDoNotOverlap(t *testing.T) {
	d, _ := board(t)
	taken := map[[2]int]string{}
	next := 0 // the first line below what was placed
	for i, p := range d.Panels {
		g := p.Grid
		if g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > columns {
			t.Errorf("%s is at %+v", p.Title, g)
		}
		if p.Type == "row" {
			if g.Y != next || g.W != columns || g.H != 1 {
				t.Errorf("row %s is at %+v, not in line %d", p.Title, g, next)
			}
			if i+1 == len(d.Panels) || d.Panels[i+1].Type == "row" {
				t.Errorf("row %s is empty", p.Title)
			}
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Fatalf("%s and %s overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		next = max(next, g.Y+g.H)
	}
	if len(taken) != columns*next {
		t.Errorf("%d of %d fields are empty", columns*next-len(taken), columns*next)
	}
}

// TestPanelsLeadToRunbooks: to those that there are, and to each alert's from
// somewhere.
func TestPanelsLeadToRunbooks(t *testing.T) {
	d, _ := board(t)
	books, linked := runbooks(t), map[string]bool{}
	for _, p := range d.Panels {
		for _, link := range p.Links {
			_, name, _ := strings.Cut(link.URL, "/docs/runbooks/")
			name = strings.TrimSuffix(name, ".md")
			if books[name] == "" {
				t.Errorf("%s leads to %s", p.Title, link.URL)
			}
			linked[name] = true
		}
	}
	for _, rule := range rules(t) {
		if !linked[rule.Alert] {
			t.Errorf("no panel leads to the runbook of %s", rule.Alert)
		}
	}
}

// TestRefusalsAreCounted: the panels count single refusals, the first ever included,
// and no refusal twice because a reading is missing.
func TestRefusalsAreCounted(t *testing.T) {
	d, _ := board(t)
	expr := withoutVariables(d.queries()["Writes refused, query A"])
	var inputs []map[string]string
	series := func(reason, values string) {
		inputs = append(inputs, map[string]string{
			"series": fmt.Sprintf("fencedlease_guard_verdicts_total{job='value', admitted='no', dry_run='false', reason='%s'}", reason),
			"values": values,
		})
	}
	series("long ago", "7x120")
	series("long ago, and a reading is missing", "7x101 stale 7x20") // where the window begins
	series("the first ever", "_x108 1x20")
	series("the first ever, and then one more", "_x108 1 1 1 2x20")
	data, err := yaml.Marshal(map[string]any{"tests": []any{map[string]any{
		"interval":     "30s",
		"input_series": inputs,
		"promql_expr_test": []any{map[string]any{
			"expr": "round(" + expr + ")", "eval_time": "56m", // the window begins with reading 102
			"exp_samples": []any{map[string]any{"labels": "{}", "value": 3}},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", file)
}
