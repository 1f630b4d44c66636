package kubectl

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// page is docs/kubectl.md.
func page(t *testing.T) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "kubectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	recipePattern = regexp.MustCompile("(?s)<!-- TestRecipes/([a-z-]+) -->\n```[a-z]+\n(.*?)```\n")
	blockPattern  = regexp.MustCompile("(?m)^```[a-z]+$")
)

// recipe is a code block of the page, by the name of its test.
func recipe(t *testing.T, name string) string {
	t.Helper()
	text, ok := pageRecipes(t)[name]
	if !ok {
		t.Fatalf("docs/kubectl.md has no recipe %s", name)
	}
	return text
}

func pageRecipes(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, match := range recipePattern.FindAllStringSubmatch(page(t), -1) {
		found[match[1]] = match[2]
	}
	return found
}

// tableRow is a row of the table under "What happens".
type tableRow struct {
	command                            string
	ways                               []string // where its token can go
	noToken, olderMark, stale, current string
}

// tableRows reads the table under "What happens".
func tableRows(t *testing.T) []tableRow {
	t.Helper()
	var rows []tableRow
	for line := range strings.Lines(page(t)) {
		if !strings.HasPrefix(line, "| `kubectl ") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if len(cells) != 6 {
			t.Fatalf("a row with %d cells: %s", len(cells), line)
		}
		rows = append(rows, tableRow{
			command: cells[0], ways: strings.Split(cells[1], ", "),
			noToken: cells[2], olderMark: cells[3], stale: cells[4], current: cells[5],
		})
	}
	return rows
}

// TestEveryBlockOfThePageIsARecipe: whatever can be copied is tested.
func TestEveryBlockOfThePageIsARecipe(t *testing.T) {
	found := pageRecipes(t)
	if blocks := len(blockPattern.FindAllString(page(t), -1)); blocks != len(found) {
		t.Errorf("%d code blocks, %d of them with a test", blocks, len(found))
	}
	for name := range found {
		if recipeTests[name] == nil {
			t.Errorf("recipe %s has no test", name)
		}
	}
	for name := range recipeTests {
		if _, ok := found[name]; !ok {
			t.Errorf("test %s has no recipe", name)
		}
	}
}
