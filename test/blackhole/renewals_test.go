package blackhole

import (
	"testing"

	"github.com/fencedlease/fencedlease/test/suite"
)

// slower is how much slower the median of a write may be with webhooks that are a black
// hole than without any.
const slower = 1.2

// TestRenewalsTakeNoLonger than where there are no webhooks at all, and nor do the
// heartbeats of nodes and the writes of kube-system.
func TestRenewalsTakeNoLonger(t *testing.T) {
	s := newStage(t)
	configurations := s.stopManager()
	c := &comparison{
		w: s.World, hole: openHole(s.World), configurations: configurations, writes: bystanders(s),
		// After each change the API server compiles the conditions anew, with megabytes
		// of garbage. The first writes are for that; and so many follow that what is
		// left of it does not count.
		rounds: 16, each: 40, unmeasured: 1,
	}
	c.run()
	t.Log(c)
	for _, write := range c.writes {
		if ratio := c.of[write.name].ratio(); ratio >= slower {
			t.Errorf("%s takes %.3f times as long as without webhooks", write.name, ratio)
		}
	}
	if c.fell != 0 {
		t.Errorf("%d of these writes came to a webhook", c.fell)
	}
	for _, name := range []string{"payments", "orders"} {
		if keys := suite.Keys(s.Lease(name)); keys.Token != "1" || keys.TokenFor != "holder" {
			t.Errorf("after the renewals of Lease %s our keys are %+v", name, keys)
		}
	}
}
