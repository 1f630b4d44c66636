package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/test/suite"
)

var block = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```\n")

// blocks are the code blocks of docs/controllers.md in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "controllers.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, match := range block.FindAllStringSubmatch(string(text), -1) {
		if match[1] == language {
			found = append(found, match[2])
		}
	}
	if len(found) == 0 {
		t.Fatalf("the page has no block in %s", language)
	}
	return found
}

// The difference that the page shows leads to the program that is tested, from one
// that has none of it.
func TestPageShowsTheManager(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root(t), "examples", "manager", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	program := string(data)
	has := func(line string) bool { return strings.Contains(program, line+"\n") }
	diff := blocks(t, "diff")[0]
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		switch kept := strings.TrimSpace(line[min(1, len(line)):]); {
		case strings.HasPrefix(line, "-") && has(line[1:]):
			t.Errorf("the program still has what the page takes out: %s", line)
		case !strings.HasPrefix(line, "-") && kept != "" && !has(line[1:]):
			t.Errorf("the program has not what the page shows: %s", line)
		}
	}
	for _, snippet := range blocks(t, "go") {
		if !strings.Contains(program, snippet) {
			t.Errorf("the program has not what the page shows:\n%s", snippet)
		}
	}
}

// The manifests of the page are what the API server takes.
func TestPageManifests(t *testing.T) {
	w := suite.New(t)
	for _, manifest := range blocks(t, "yaml") {
		out, err := suite.Cluster.KubectlInput(w.Ctx, manifest, "apply", "--namespace="+w.Namespace, "--dry-run=server", "--validate=strict", "-f", "-")
		w.Must(err)
		if out.ExitCode != 0 {
			t.Errorf("%s\n%s", manifest, out.Stderr)
		}
	}
}
