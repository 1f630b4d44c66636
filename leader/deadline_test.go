package leader

import (
	"errors"
	"testing"
	"time"
)

// The deadline moves with each renewal that succeeds, to RenewDeadline after it was
// sent, and with nothing else.
func TestDeadlineMovesWithTheProof(t *testing.T) {
	c := newCandidate(t)
	term := c.acquire()
	wants := func(what string, want time.Time) {
		t.Helper()
		if got := term.Deadline(); !got.Equal(want) {
			t.Errorf("%s: the deadline is %s after the start, want %s", what, got.Sub(start), want.Sub(start))
		}
	}
	wants("acquired", start.Add(DefaultRenewDeadline))
	c.clock.Step(time.Second)
	_ = c.writes(nil, errors.New("no route to host"))
	_ = c.reads(lease(me, "7"), nil)
	wants("a renewal that failed, and a read", start.Add(DefaultRenewDeadline))
	c.api.takes = 3 * time.Second
	_ = c.writes(lease(me, "7"), nil)
	wants("a renewal that took long", start.Add(time.Second+DefaultRenewDeadline))
}
