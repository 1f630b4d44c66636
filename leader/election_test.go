package leader

import (
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// A candidate whose work never began releases the Lease if it holds it, or may.
func TestGiveUp(t *testing.T) {
	for name, tc := range map[string]struct {
		happens  func(*candidate)
		stored   *coordinationv1.Lease // by then
		requests int
	}{
		"another holds the Lease": {
			func(c *candidate) { _ = c.reads(lease(other, "1"), nil) }, lease(other, "1"), 0,
		},
		"it is held, but hands out no token": {
			func(c *candidate) { _ = c.writes(lease(me, "", unlabelled), nil) }, lease(me, "", unlabelled), 2,
		},
		"the answer to the acquisition is lost": {
			func(c *candidate) { _ = c.writes(nil, errors.New("connection reset")) }, lease(me, "7"), 2,
		},
		"the answer is lost, and another was faster": {
			func(c *candidate) { _ = c.writes(nil, errors.New("connection reset")) }, lease(other, "7"), 1,
		},
		"the acquisition was refused": {
			func(c *candidate) { _ = c.writes(nil, conflict()) }, lease(other, "7"), 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(t)
			_ = c.reads(lease("", "1"), nil)
			tc.happens(c)
			c.api.answer, c.api.err = tc.stored, nil
			before := c.api.requests
			c.lock.giveUp(t.Context())
			if got := c.api.requests - before; got != tc.requests {
				t.Errorf("%d requests, want %d", got, tc.requests)
			}
		})
	}
}
