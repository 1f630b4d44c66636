package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// breakGlass is the runbook that belongs to no alert.
const breakGlass = "webhook-down"

// TestEveryAlertHasARunbook, and every runbook an alert.
func TestEveryAlertHasARunbook(t *testing.T) {
	var alerts []string
	for _, rule := range rules(t) {
		alerts = append(alerts, rule.Alert)
	}
	books := runbooks(t)
	for _, alert := range alerts {
		if books[alert] == "" {
			t.Errorf("%s has no runbook", alert)
		}
	}
	for name, text := range books {
		if name == breakGlass {
			continue
		}
		if !slices.Contains(alerts, name) {
			t.Errorf("%s.md belongs to no alert", name)
		}
		if !strings.HasPrefix(text, "# "+name+"\n") {
			t.Errorf("%s.md has another title", name)
		}
		var headings []string
		for _, heading := range headingPattern.FindAllStringSubmatch(text, -1) {
			headings = append(headings, heading[1])
		}
		if want := []string{"Meaning", "Impact", "Diagnosis", "Mitigation"}; !slices.Equal(headings, want) {
			t.Errorf("%s.md has the headings %q, want %q", name, headings, want)
		}
		_, diagnosis, _ := strings.Cut(text, "\n## Diagnosis\n")
		if !strings.Contains(diagnosis, "```sh\n") {
			t.Errorf("%s.md has no command", name)
		}
	}
}

// TestCommandsAndLinksExist: each command of the plugin, and each page that a
// runbook leads to.
func TestCommandsAndLinksExist(t *testing.T) {
	for name, text := range runbooks(t) {
		for _, command := range commandPattern.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(path(t, "cmd", "kubectl-fence", command[1]+".go")); err != nil {
				t.Errorf("%s.md: there is no kubectl fence %s", name, command[1])
			}
		}
		for _, link := range linkPattern.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(path(t, "docs", "runbooks", filepath.FromSlash(link[1]))); err != nil {
				t.Errorf("%s.md leads to %s: %v", name, link[1], err)
			}
		}
	}
}

var (
	headingPattern = regexp.MustCompile(`(?m)^## (.*)$`)
	commandPattern = regexp.MustCompile(`kubectl fence ([a-z]+)`)
	linkPattern    = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// TestBreakGlass: the patches that open the door apply to the webhook configurations
// as they are, each changes something, and those that close it leave all as it was.
func TestBreakGlass(t *testing.T) {
	manifests, err := os.ReadFile(path(t, "config", "webhook", "manifests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	before, now := map[string][]byte{}, map[string][]byte{}
	for document := range strings.SplitSeq(string(manifests), "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var configuration metav1.PartialObjectMetadata
		if err := json.Unmarshal(data, &configuration); err != nil {
			t.Fatal(err)
		}
		kind := strings.ToLower(configuration.Kind) + " " + configuration.Name
		before[kind], now[kind] = data, data
	}
	patches := patchPattern.FindAllStringSubmatch(runbooks(t)[breakGlass], -1)
	if len(patches) != 8 {
		t.Errorf("%d patches, want 4 that open and 4 that close", len(patches))
	}
	for _, match := range patches {
		kind, text := match[1], match[2]
		patch, err := jsonpatch.DecodePatch([]byte(text))
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		patched, err := patch.Apply(now[kind])
		if err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, text)
		}
		if jsonpatch.Equal(now[kind], patched) {
			t.Errorf("%s: it changes nothing\n%s", kind, text)
		}
		now[kind] = patched
	}
	for kind := range before {
		if !jsonpatch.Equal(before[kind], now[kind]) {
			t.Errorf("%s is not closed again:\n%s", kind, now[kind])
		}
	}
}

// patchPattern is a patch of a webhook configuration: its kind and name, and the
// operations.
var patchPattern = regexp.MustCompile(`kubectl patch ((?:validating|mutating)webhookconfiguration fencedlease) --type=json -p '([^']*)'`)

// runbooks are all of them, by name.
func runbooks(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(path(t, "docs", "runbooks", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	found := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(filepath.Base(file), ".md")] = string(text)
	}
	return found
}
