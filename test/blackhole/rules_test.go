package blackhole

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestWithoutTheRules: what keeps those writes out of the hole are the rules in the
// webhook configurations. Without one of these, the same comparison shows that they
// wait.
func TestWithoutTheRules(t *testing.T) {
	s := newStage(t)
	all := s.stopManager()
	h := openHole(s.World)
	writes := bystanders(s)
	all.takeAway(s.World)
	for _, rule := range []struct {
		name    string
		takeOut func(mintAndGuard)
		wait    []string
	}{
		{
			"the match conditions of mint",
			func(of mintAndGuard) { of.mint.MatchConditions = nil },
			[]string{fencedRenewal, usersRenewal},
		},
		{
			"the object selector of mint",
			func(of mintAndGuard) { of.mint.ObjectSelector = nil },
			[]string{unfencedRenewal, schedulersRenewal},
		},
		{
			"both selectors of mint",
			func(of mintAndGuard) { of.mint.ObjectSelector, of.mint.NamespaceSelector = nil, nil },
			[]string{nodesRenewal},
		},
		{
			"the object selector of guard",
			func(of mintAndGuard) { of.guard.ObjectSelector = nil },
			[]string{kubeSystemWrite},
		},
	} {
		c := &comparison{w: s.World, hole: h, configurations: all.changed(rule.takeOut), rounds: 1, each: 1}
		for _, write := range writes {
			if slices.Contains(rule.wait, write.name) {
				c.writes = append(c.writes, write.evenIfFailed())
			}
		}
		c.run()
		c.configurations.takeAway(s.World)
		t.Logf("without %s%s", rule.name, c)
		for _, name := range rule.wait {
			if l := c.of[name]; l == nil || l.ratio() < slower {
				t.Errorf("without %s, nothing shows that %s waits", rule.name, name)
			}
		}
		if c.fell == 0 {
			t.Errorf("without %s, nothing came to a webhook", rule.name)
		}
	}
}

// evenIfFailed is the write, whether a webhook is in its way or not.
func (k kind) evenIfFailed() kind {
	return kind{k.name, func(ctx context.Context) error {
		err := k.send(ctx)
		if err != nil && strings.Contains(err.Error(), "failed calling webhook") {
			return nil
		}
		return err
	}}
}
