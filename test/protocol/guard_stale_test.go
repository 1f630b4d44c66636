package protocol

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestG9BelowTheMark: once a term has written an object, no write with a lesser
// claim is admitted on it (S2).
func TestG9BelowTheMark(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)

	for name, err := range map[string]error{
		"token lowered":         s.first.Modify("account", suite.Token("1")),
		"lowered with data":     s.first.Modify("account", suite.Token("1"), suite.Balance("1")),
		"lowered with a nonce":  s.first.Modify("account", suite.Token("1"), write("1/late")),
		"lowered by a patch":    merge(s.World, s.first, "account", `{"metadata":{"annotations":{"fencedlease.io/token":"1"}},"data":{"balance":"1"}}`),
		"by the extra":          s.presents("1").Modify("account", suite.Balance("1")),
		"extra, annotation not": s.presents("1").Modify("account", suite.Balance("1"), write("2/new")),
		"label off":             s.first.Modify("account", suite.Unguarded, suite.Token("1")),
		"delete":                remove(s.World, s.presents("1"), "account"),
		"by the holder itself":  s.second.Modify("account", suite.Token("1")),
	} {
		t.Run(name, func(t *testing.T) {
			got := suite.Refused(t, err, 412, fence.ReasonStale, "token 1 is stale: the newest is 2", `held by "second"`, "stop, and read again")
			wantCauses(t, got, causes{fence.CausePresented: "1", fence.CauseMark: "2", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
		})
	}
	s.untouched("account", "2")
	suite.Admitted(t, s.presents("2").Modify("account", suite.Balance("1")))
	suite.Admitted(t, remove(s.World, s.presents("2"), "account"))
}

// TestG9BelowCurrent: a claim that is as high as the mark is stale all the same
// when a later token was minted (S3).
func TestG9BelowCurrent(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("free")))

	want := causes{fence.CausePresented: "1", fence.CauseCurrent: "2", fence.CauseHolder: "second"}
	for name, err := range map[string]error{
		"create": s.first.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("1"))),
		"label":  s.first.Modify("free", suite.GuardedBy("payments"), suite.Token("1")),
	} {
		t.Run(name, func(t *testing.T) {
			wantCauses(t, suite.Refused(t, err, 412, fence.ReasonStale, "token 1 is stale"), want)
		})
	}
	want[fence.CauseMark] = "1"
	for name, err := range map[string]error{
		"update":    s.first.Modify("account", suite.Balance("1"), write("1/late")),
		"extra":     s.presents("1").Modify("account", suite.Balance("1")),
		"label off": s.first.Modify("account", suite.Unguarded, write("1/late")),
		"delete":    remove(s.World, s.presents("1"), "account"),
	} {
		t.Run(name, func(t *testing.T) {
			wantCauses(t, suite.Refused(t, err, 412, fence.ReasonStale, "token 1 is stale"), want)
		})
	}
	s.untouched("account", "1")
	suite.Admitted(t, s.second.Modify("account", suite.Token("2"), suite.Balance("1")))
}

// TestG9Released: a release supersedes nothing. The next term does.
func TestG9Released(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	s.second.Release("payments")
	suite.Admitted(t, s.second.Modify("account", suite.Token("2"), suite.Balance("1")))
	s.first.Acquire("payments", "first")
	suite.Refused(t, s.second.Modify("account", suite.Balance("2"), write("2/late")), 412, fence.ReasonStale, `the newest is 3, held by "first"`)
}

// TestG9SameHolderAgain: a new process under an old name is a new term, and the
// old process a former leader.
func TestG9SameHolderAgain(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	s.Must(s.second.Modify("account", suite.Token("2")))
	if three := s.first.Acquire("payments", "second"); three != 3 {
		t.Fatalf("token %s, want 3", three)
	}
	suite.Refused(t, s.second.Modify("account", suite.Balance("1"), write("2/late")), 412, fence.ReasonStale)
	suite.Admitted(t, s.first.Modify("account", suite.Token("3"), suite.Balance("1")))
}

// TestG9Event: a refusal is told in an Event about the object, a dry run's is not.
func TestG9Event(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	s.Guarded("rehearsed", "payments", 2)

	event := awaitEvent(s.World, "FenceRefused", "account", func(try string) error {
		rehearsed := s.GetConfigMap("rehearsed")
		suite.Token("1")(rehearsed)
		suite.Refused(t, s.first.Update(s.Ctx, rehearsed, client.DryRunAll), 412, fence.ReasonStale)
		suite.Refused(t, s.first.Modify("account", suite.Token("1"), suite.Balance(try)), 412, fence.ReasonStale)
		return nil
	})
	if event.Type != "Warning" || event.Regarding.Kind != "ConfigMap" || event.Action != "Refuse" {
		t.Errorf("%+v", event)
	}
	wantNote(t, event, "FencedLease payments refused a write by system:serviceaccount:"+s.Namespace+":worker: 412 FencingTokenStale")
	for _, event := range eventsOf(s.World) {
		if event.Reason == "FenceRefused" && event.Regarding.Name == "rehearsed" {
			t.Errorf("a dry run has an Event: %s", event.Note)
		}
	}
}
