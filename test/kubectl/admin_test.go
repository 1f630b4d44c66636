package kubectl

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestAdminIsRefusedLikeAnyone: every right in the cluster is no token.
func TestAdminIsRefusedLikeAnyone(t *testing.T) {
	w := suite.New(t)
	secondTerm(w)
	p := admin(w)
	p.kubectl("patch", "configmap", "state", "-p", "data: {balance: '1'}").refused(fence.ReasonStale, "presents no token")
	p.claims("1").kubectl("patch", "configmap", "state", "-p", "data: {balance: '1'}").refused(fence.ReasonStale, "token 1 is stale")
	p.kubectl("delete", "configmap", "state").refused(fence.ReasonRequired)
	p.claims("2").kubectl("patch", "configmap", "state", "-p", "data: {balance: '2'}").succeeds("patched")
	p.kubectl("patch", "configmap", "state", "-p", "data: {balance: '3'}").refused(fence.ReasonRequired)
	p.claims("2").kubectl("delete", "configmap", "state").succeeds("deleted")
}

// TestBypass: a reason in the write itself, a right that not everyone has, and a
// mark that stays.
func TestBypass(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w)
	write := func(p person, annotations string) result {
		t.Helper()
		return p.kubectl("patch", "configmap", "state", "-p", "data: {balance: '1'}\nmetadata: {annotations: {"+annotations+"}}")
	}

	write(ci, "fencedlease.io/bypass: ticket 42").refused(fence.ReasonStale, "break-glass needs the verb bypass on fencedleases.fencedlease.io")
	write(admin(w), "fencedlease.io/bypass: ' '").refused(fence.ReasonStale)
	// A stale claim is overridden, but never stored.
	write(admin(w), "fencedlease.io/bypass: ticket 42, fencedlease.io/token: '2'").succeeds()
	write(admin(w), "fencedlease.io/bypass: ticket 43, fencedlease.io/token: '1'").
		refused(fence.ReasonInvalid, `must be "2": a break-glass write leaves the mark exactly as it was`)
	wantMark(w, "2")

	// kubectl annotate breaks the glass as well, but changes nothing else.
	admin(w).kubectl("annotate", "--overwrite", "configmap", "state", "fencedlease.io/bypass=ticket 44").
		warns("admitted by break-glass, which is recorded", "FencingTokenRequired")
	// Scripts that must not go on after a warning say so.
	admin(w).kubectl("annotate", "--overwrite", "configmap", "state", "fencedlease.io/bypass=ticket 45", "--warnings-as-errors").
		fails(1, "Warning: admitted by break-glass", "error: 1 warning received")
}

// TestDryRun: --dry-run=server and kubectl diff give the verdict of the write, and
// store nothing.
func TestDryRun(t *testing.T) {
	w := suite.New(t)
	ci := secondTerm(w)
	before := versions(w)["state"]
	dry := func(p person) person { return p.with("--dry-run=server") }
	patch := []string{"patch", "configmap", "state", "-p", "data: {balance: '1'}"}

	dry(ci).kubectl(patch...).refused(fence.ReasonStale)
	dry(ci.claims("1")).kubectl(patch...).refused(fence.ReasonStale)
	dry(ci.claims("3")).kubectl(patch...).refused(fence.ReasonNeverIssued)
	dry(ci.claims("2")).kubectl(patch...).succeeds("patched")
	dry(ci).kubectl("delete", "configmap", "state").refused(fence.ReasonRequired)
	dry(ci.claims("2")).kubectl("delete", "configmap", "state").succeeds("(server dry run)")
	dry(ci).kubectlInput(claimed("1", "2", "a"), "apply", "-f", "-").exits(0)
	dry(ci).kubectlInput(claimed("1", "1", "a"), "apply", "-f", "-").refused(fence.ReasonStale)
	dry(admin(w)).kubectl("annotate", "configmap", "state", "fencedlease.io/bypass=dry").warns("admitted by break-glass")
	if after := versions(w)["state"]; after != before {
		t.Error("a dry run changed the object")
	}
	admin(w).kubectl("get", "events", "--field-selector=reason=FenceBypassed").fails(0, "No resources found")

	// kubectl diff exits with 1 for a difference, so with more for a refusal.
	diff := func(p person, args ...string) result {
		t.Helper()
		return p.kubectlInput(unclaimed("1"), append([]string{"diff", "-f", "-"}, args...)...)
	}
	diff(ci).fails(2, "Error from server (FencingTokenStale)")
	diff(ci, "--server-side", "--force-conflicts").fails(2, "Error from server (FencingTokenStale)")
	diff(ci.claims("2")).exits(1)
}
