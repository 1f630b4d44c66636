package protocol

import (
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// meddler is another mutating webhook, which has its way after stamp: it sets the
// annotation token of ConfigMaps, or removes it.
type meddler struct {
	token atomic.Pointer[string] // nil leaves objects alone, "" removes it
}

// meddle puts a meddler to work on the ConfigMaps that are labelled meddled.
func meddle(w *suite.World) *meddler {
	w.T.Helper()
	m := &meddler{}
	w.MutatingWebhook("meddlers", admissionregistrationv1.IfNeededReinvocationPolicy, func(*admissionv1.AdmissionRequest) []suite.JSONPatch {
		const path = "/metadata/annotations/fencedlease.io~1token"
		switch token := m.token.Load(); {
		case token == nil:
			return nil
		case *token == "":
			return []suite.JSONPatch{{Op: "remove", Path: path}}
		default:
			return []suite.JSONPatch{{Op: "add", Path: path, Value: *token}}
		}
	})
	return m
}

// sets has the annotation set to that token from now on, or removed for "".
func (m *meddler) sets(token string) { m.token.Store(&token) }

// rests leaves objects alone from now on.
func (m *meddler) rests() { m.token.Store(nil) }

// meddled puts an object before the meddler.
func meddled(o client.Object) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["team"] = "meddlers"
	o.SetLabels(labels)
}

// TestG11Mismatch: what would be stored is what was claimed, whoever else has a
// hand in it.
func TestG11Mismatch(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	s.Guarded("sealed", "payments", 2)
	m := meddle(s.World)
	two := s.presents("2")

	m.sets("1")
	got := suite.Refused(t, two.Modify("account", meddled, suite.Balance("1")), 422, fence.ReasonInvalid,
		`as it would be stored must be "2": it must be the token that the request presents`)
	wantCauses(t, got, causes{fence.CausePresented: "2", fence.CauseMark: "1", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
	// On an object that this term has touched, it would lower the mark (S1).
	suite.Refused(t, two.Modify("sealed", meddled, suite.Balance("1")), 422, fence.ReasonInvalid, `must be "2"`)
	suite.Refused(t, two.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), meddled)), 422, fence.ReasonInvalid, `must be "2"`)
	m.sets("")
	suite.Refused(t, two.Modify("sealed", meddled, suite.Balance("1")), 422, fence.ReasonInvalid, `must be "2"`)
	m.sets("3")
	suite.Refused(t, two.Modify("sealed", meddled, suite.Balance("1")), 403, fence.ReasonNeverIssued, "token 3")
	m.sets("0")
	suite.Refused(t, two.Modify("sealed", meddled, suite.Balance("1")), 422, fence.ReasonInvalid, `the annotation`, `"0"`)
	s.untouched("account", "1")
	s.untouched("sealed", "2")

	// The twins: no meddling, meddling to no effect, and nothing to be stored.
	m.sets("2")
	suite.Admitted(t, two.Modify("account", meddled, suite.Balance("1")))
	m.sets("1")
	suite.Admitted(t, two.Modify("sealed", meddled, suite.Unguarded))
	m.rests()
	suite.Admitted(t, two.Modify("account", meddled, suite.Balance("2")))
	wantMark(s.World, "account", "2")
}

// TestG11UnclaimedKeepsTheMark: a write that is admitted without a claim leaves
// the mark exactly as it was: here, finalizers off an object in deletion.
func TestG11UnclaimedKeepsTheMark(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	s.Must(s.second.Modify("account", meddled, finalizers(ourFinalizer)))
	s.Must(remove(s.World, s.second, "account"))
	m := meddle(s.World)

	m.sets("1") // and so the write presents it
	suite.Refused(t, s.first.Modify("account", finalizers()), 412, fence.ReasonStale, "token 1 is stale")
	m.sets("")
	suite.Refused(t, s.first.Modify("account", finalizers()), 428, fence.ReasonRequired)
	s.untouched("account", "2")
	m.rests()
	suite.Admitted(t, s.first.Modify("account", finalizers()))
}
