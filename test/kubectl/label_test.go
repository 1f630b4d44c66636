package kubectl

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestLabel: putting an object under a FencedLease, taking it off, and moving it
// are writes under that FencedLease.
func TestLabel(t *testing.T) {
	const key = "fencedlease.io/guarded-by"
	w := suite.New(t)
	ci := secondTerm(w)
	w.FencedLease("ledger")
	w.Pod("clerk").Acquire("ledger", "clerk")

	ci.kubectl("label", "configmap", "state", key+"-").refused(fence.ReasonStale)
	ci.claims("1").kubectl("label", "configmap", "state", key+"-").refused(fence.ReasonStale)
	ci.claims("2").kubectl("label", "--overwrite", "configmap", "state", key+"=ledger").
		refused(fence.ReasonInvalid, `cannot change from "payments" to "ledger" in one step`, "take it off")
	ci.claims("2").kubectl("label", "configmap", "state", key+"-").succeeds("unlabeled")

	// Off the guard its annotations are anyone's, and the old mark is no claim of
	// the newest term.
	ci.kubectl("label", "configmap", "state", key+"=nobody").refused(fence.ReasonNotFound,
		`FencedLease "nobody" does not exist in this namespace`, "create it")
	ci.kubectl("annotate", "--overwrite", "configmap", "state", "fencedlease.io/token=1").succeeds()
	ci.kubectl("label", "configmap", "state", key+"=payments").refused(fence.ReasonStale, "token 1 is stale")
	ci.kubectl("annotate", "configmap", "state", "fencedlease.io/token-").succeeds()
	ci.kubectl("label", "configmap", "state", key+"=payments").refused(fence.ReasonRequired)
	ci.claims("2").kubectl("label", "configmap", "state", key+"=payments").succeeds("labeled")
	wantMark(w, "2")
}
