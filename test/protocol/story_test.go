package protocol

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestPausedLeader is the classic story: the late write of a leader that was
// paused gets 412, and nothing is lost.
func TestPausedLeader(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	first, second := w.Pod("first"), w.Pod("second")

	one := first.Acquire("payments", "first")
	w.Guarded("account-99", "payments", one)
	suite.Admitted(t, first.Modify("account-99", suite.Balance("40000")))

	two := second.Acquire("payments", "second")
	if one != 1 || two != 2 {
		t.Fatalf("tokens %s and %s, want 1 and 2", one, two)
	}
	suite.Admitted(t, second.Modify("account-99", suite.Balance("50000"), suite.Token("2")))

	late := suite.Refused(t, first.Modify("account-99", suite.Balance("10000"), suite.Token("1")), 412, fence.ReasonStale, "stop")
	if late.Causes[fence.CausePresented] != "1" || late.Causes[fence.CauseMark] != "2" ||
		late.Causes[fence.CauseCurrent] != "2" || late.Causes[fence.CauseHolder] != "second" {
		t.Errorf("causes: %v", late.Causes)
	}
	if got := w.GetConfigMap("account-99").Data["balance"]; got != "50000" {
		t.Errorf("balance %s, want 50000", got)
	}
	w.AwaitToken("payments", 2)
}
