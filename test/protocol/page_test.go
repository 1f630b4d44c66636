package protocol

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// rows are the rules that need a test each.
func rows() []string {
	var names []string
	for n := range 10 {
		names = append(names, "M"+strconv.Itoa(n+1))
	}
	for n := range 12 {
		names = append(names, "G"+strconv.Itoa(n+1))
	}
	return append(names, "Reach", "Stamp", "Exempt", "BreakGlass", "Warn", "Cached", "Review", "FencedLease")
}

var (
	testPattern = regexp.MustCompile(`(?m)^func (Test([MG][0-9]+|[A-Z][A-Za-z]*)[A-Za-z0-9]*)\(`)
	rowPattern  = regexp.MustCompile(`^([MG][0-9]+|` + strings.Join(rows()[22:], "|") + `)`)
)

// TestPageMapsRowsToTests: docs/protocol.md maps each row to all of its tests,
// and no row is without one. It prints the table as it should be.
func TestPageMapsRowsToTests(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, dir := range []string{"protocol", "outage"} {
		files, err := filepath.Glob(filepath.Join(root, "test", dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range testPattern.FindAllStringSubmatch(string(source), -1) {
				if row := rowPattern.FindString(strings.TrimPrefix(match[1], "Test")); row != "" {
					found[row] = append(found[row], "`"+match[1]+"`")
				}
			}
		}
	}
	var table strings.Builder
	table.WriteString("| row | tests |\n|---|---|\n")
	for _, row := range rows() {
		if len(found[row]) == 0 {
			t.Errorf("row %s has no test", row)
		}
		slices.SortFunc(found[row], cmp.Compare[string])
		fmt.Fprintf(&table, "| %s | %s |\n", row, strings.Join(found[row], ", "))
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(page), table.String()) {
		t.Errorf("docs/protocol.md should end with:\n%s", table.String())
	}
}
