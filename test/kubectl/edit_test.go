package kubectl

import (
	"os"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/test/suite"
)

// TestEditKeepsWhatWasTyped: a refused edit is in a file, and kubectl says which.
func TestEditKeepsWhatWasTyped(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w).edits("s/balance: .*/balance: 'typed'/")
	for name, p := range map[string]person{"unclaimed": ci, "stale": ci.claims("1"), "never issued": ci.claims("3")} {
		r := p.kubectl("edit", "configmap", "state")
		r.fails(1, `configmaps "state" could not be patched: admission webhook`, "to try this update again")
		_, after, _ := strings.Cut(r.Stderr, "replace -f ")
		file, _, _ := strings.Cut(after, "`")
		kept, err := os.ReadFile(file)
		w.Must(err)
		if !strings.Contains(string(kept), "balance: 'typed'") {
			t.Errorf("%s: %s has\n%s", name, file, kept)
		}
	}
	// The editor is opened once for each: no refusal of these makes kubectl ask again.
	if shown := len(ci.shown()); shown != 3 {
		t.Errorf("the editor was opened %d times for 3 edits", shown)
	}
}

// TestEditAgainAfter422: kubectl takes any 422 for a mistake in the file, and opens
// the editor again until nothing more is changed.
func TestEditAgainAfter422(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w).edits(`s/fencedlease.io.token: .*/fencedlease.io\/token: two/`)
	ci.kubectl("edit", "configmap", "state").
		fails(1, `error: configmaps "state" is invalid`, "no valid changes were saved")
	shown := ci.shown()
	if len(shown) != 2 {
		t.Errorf("the editor was opened %d times", len(shown))
	}
	// It says what is wrong: the second time, in the comment above the object.
	if all := strings.Join(shown, ""); !strings.Contains(all, "# * FencingTokenInvalid: ") || !strings.Contains(all, "in base 10") {
		t.Errorf("the editor does not show the message of the refusal:\n%s", all)
	}
	wantMark(w, "1")
}
