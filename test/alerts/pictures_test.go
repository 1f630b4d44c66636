package alerts

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxPicture is how large a picture may be, in bytes: whoever clones the repository
// gets all of them.
const maxPicture = 150_000

// TestEveryRowHasAPicture: docs/dashboard.md has a section for each row of the
// dashboard, in that order, with its picture, which is small; and there are no others.
func TestEveryRowHasAPicture(t *testing.T) {
	data, err := os.ReadFile(path(t, "docs", "dashboard.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	d, _ := board(t)
	var files []string
	for _, p := range d.Panels {
		if p.Type != "row" {
			continue
		}
		_, rest, found := strings.Cut(page, "\n## "+p.Title+"\n")
		if !found {
			t.Errorf("there is no section for %s, or it is not in its place", p.Title)
			continue
		}
		section, _, _ := strings.Cut(rest, "\n## ")
		pictures := picturePattern.FindAllStringSubmatch(section, -1)
		if len(pictures) != 1 {
			t.Errorf("%s has %d pictures", p.Title, len(pictures))
			continue
		}
		file := path(t, "docs", pictures[0][1])
		files = append(files, file)
		picture, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := png.Decode(bytes.NewReader(picture)); err != nil || len(picture) > maxPicture {
			t.Errorf("%s has %d bytes (%v)", file, len(picture), err)
		}
		page = rest
	}
	there, err := filepath.Glob(path(t, "docs", "dashboard", "*"))
	slices.Sort(files)
	if err != nil || !slices.Equal(there, files) {
		t.Errorf("there are the pictures %q (%v), and the page shows %q", there, err, files)
	}
}

// picturePattern is how a page shows one.
var picturePattern = regexp.MustCompile(`!\[[^\]]+\]\(([^)]+\.png)\)`)
