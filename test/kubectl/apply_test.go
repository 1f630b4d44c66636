package kubectl

import (
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestTwoFieldManagers: with server-side apply, two managers with a nonce each are
// in conflict over it. They force, or present their tokens beside the request.
func TestTwoFieldManagers(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w)
	apply := func(p person, manager, manifest string, flags ...string) result {
		t.Helper()
		return p.kubectlInput(manifest, append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"}, flags...)...)
	}

	apply(ci, "one", claimed("0", "2", "one"), "--force-conflicts").succeeds("serverside-applied")
	apply(ci, "two", claimed("0", "2", "two")).
		fails(1, "Apply failed with 1 conflict", `conflict with "one"`, ".metadata.annotations.fencedlease.io/write")
	apply(ci, "two", claimed("0", "2", "two"), "--force-conflicts").succeeds()
	// Force is for fields. It does not get past the guard.
	apply(ci, "one", claimed("0", "1", "three"), "--force-conflicts").refused(fence.ReasonStale)

	// Nobody owns what is stamped.
	for _, manager := range []string{"one", "two", "three"} {
		apply(ci, manager, unclaimed("0")).refused(fence.ReasonRequired)
		apply(ci.claims("2"), manager, unclaimed("0")).succeeds()
	}
	wantMark(w, "2")
	w.Pod("third").Acquire("payments", "third")
	apply(ci.claims("2"), "one", unclaimed("0")).succeeds() // byte for byte what is there: not a write
	apply(ci.claims("2"), "one", unclaimed("1"), "--force-conflicts").refused(fence.ReasonStale)
	apply(ci.claims("3"), "one", unclaimed("1"), "--force-conflicts").succeeds()
	wantMark(w, "3")
}

// TestManifestThatDropsItsToken: both kinds of apply remove what a manifest no
// longer says. The mark is not lost that way.
func TestManifestThatDropsItsToken(t *testing.T) {
	for name, apply := range map[string][]string{
		"client side": {"apply", "-f", "-"},
		"server side": {"apply", "--server-side", "--force-conflicts", "-f", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			w := suite.New(t)
			ci := secondTerm(w)
			ci.kubectlInput(claimed("1", "2", "a"), apply...).exits(0)
			ci.kubectlInput(unclaimed("2"), apply...).refused(fence.ReasonRequired)
			wantMark(w, "2")
			ci.claims("2").kubectlInput(unclaimed("3"), apply...).succeeds()
			wantMark(w, "2")
			wantBalance(w, "3")
		})
	}
}

// TestApplyAgain: a manifest that changes nothing sends no write that could be
// refused, whatever token is in it.
func TestApplyAgain(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w)
	ci.kubectlInput(claimed("1", "2", "a"), "apply", "-f", "-").exits(0)
	w.Pod("third").Acquire("payments", "third")
	ci.kubectlInput(claimed("1", "2", "a"), "apply", "-f", "-").succeeds("unchanged")
}

// TestRefusedOnce: kubectl apply tries again after a conflict, but neither after
// 412 nor after 428.
func TestRefusedOnce(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w)
	ci.kubectl("annotate", "--overwrite", "configmap", "state", "fencedlease.io/token=2").succeeds()
	for reason, manifest := range map[fence.Reason]string{
		fence.ReasonStale:    claimed("1", "1", "late"),
		fence.ReasonRequired: unclaimed("1"),
	} {
		r := ci.kubectlInput(manifest, "apply", "-f", "-", "-v=6")
		r.fails(1, "Error from server ("+string(reason)+")")
		if sent := strings.Count(r.Stderr, `verb="PATCH"`); sent != 1 {
			t.Errorf("sent %d times:\n%s", sent, r.Stderr)
		}
	}
}

// TestForce: --force deletes and creates. The delete needs a token like any
// other; but where the FencedLease is gone, the object is lost.
func TestForce(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w)
	ci.kubectlInput(unclaimed("1"), "replace", "--force", "-f", "-").refused(fence.ReasonRequired, "error when deleting")
	ci.kubectlInput(claimed("1", "none", "a"), "apply", "--force", "-f", "-").fails(1, "denied the request")
	wantMark(w, "1")
	ci.claims("2").kubectlInput(unclaimed("1"), "replace", "--force", "-f", "-").succeeds("deleted", "replaced")
	wantMark(w, "2")

	admin(w).kubectl("delete", "fencedlease", "payments").succeeds()
	w.Eventually("the FencedLease is gone", func() error {
		return has(admin(w).kubectl("get", "lease", "payments", "--show-labels"), "fencedlease.io/retired=true")
	})
	ci.kubectlInput(unclaimed("2"), "apply", "-f", "-").refused(fence.ReasonNotFound)
	ci.kubectlInput(unclaimed("2"), "apply", "--force", "-f", "-").fails(1,
		`Warning: FencedLease "payments" does not exist: the write was not checked`,
		"an error occurred attempting to restore the original object")
	ci.kubectl("get", "configmap", "state").fails(1, "(NotFound)")
}
