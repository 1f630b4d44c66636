package blackhole

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/fencedlease/test/suite"
)

// kind is one of write whose latency is compared.
type kind struct {
	name string
	send func(context.Context) error
}

// latencies are those of one kind of write: without webhook configurations, and with
// them while the webhooks are a black hole.
type latencies struct{ without, with []time.Duration }

// quantile is that of some latencies.
func quantile(of []time.Duration, q float64) time.Duration {
	return slices.Sorted(slices.Values(of))[int(q*float64(len(of)-1)+0.5)]
}

// ratio is that of the medians.
func (l *latencies) ratio() float64 {
	return float64(quantile(l.with, 0.5)) / float64(quantile(l.without, 0.5))
}

// comparison is how long writes take without webhook configurations and with them,
// while the webhooks are a black hole. In each of many short rounds they are made both
// ways, either first every other time: so whatever else the machine does, in a moment or
// for a while, slows both down alike.
type comparison struct {
	w              *suite.World
	hole           *hole
	configurations *configurations
	writes         []kind
	rounds         int
	each           int // writes of a kind, each way
	unmeasured     int // more of them, first

	of   map[string]*latencies
	fell int64 // how many of the writes came into the hole
}

func (c *comparison) run() {
	c.w.T.Helper()
	c.of = map[string]*latencies{}
	for _, write := range c.writes {
		c.of[write.name] = &latencies{}
	}
	for n := range c.rounds {
		c.hole.secure.Store(n%4 < 2)
		if n%2 == 0 {
			c.without()
			c.with()
		} else {
			c.with()
			c.without()
		}
	}
}

func (c *comparison) without() {
	c.w.T.Helper()
	c.configurations.takeAway(c.w)
	c.measure(func(l *latencies) *[]time.Duration { return &l.without })
}

// with measures while others wait in the hole, as they do when this happens.
func (c *comparison) with() {
	c.w.T.Helper()
	c.configurations.putBack(c.w)
	before := c.hole.fell.Load()
	letGo := c.hole.throwIn(c.w)
	defer letGo()
	c.measure(func(l *latencies) *[]time.Duration { return &l.with })
	c.fell += c.hole.fell.Load() - before - victims
}

func (c *comparison) measure(into func(*latencies) *[]time.Duration) {
	c.w.T.Helper()
	for i := range c.unmeasured + c.each {
		for _, write := range c.writes {
			begin := time.Now()
			err := write.send(c.w.Ctx)
			took := time.Since(begin)
			if err != nil {
				c.w.T.Fatalf("%s: %v", write.name, err)
			}
			if i >= c.unmeasured {
				of := into(c.of[write.name])
				*of = append(*of, took)
			}
		}
	}
}

// String is a table.
func (c *comparison) String() string {
	var text strings.Builder
	row := func(name string, cells ...any) {
		fmt.Fprintf(&text, "\n%-40s %8v %8v %10v %8v %8v", append([]any{name}, cells...)...)
	}
	row("milliseconds", "without", "", "with", "", "ratio of")
	row(fmt.Sprintf("%d of each kind, each way", c.rounds*c.each), "p50", "p95", "p50", "p95", "the p50")
	for _, write := range c.writes {
		l := c.of[write.name]
		row(write.name, milliseconds(quantile(l.without, 0.5)), milliseconds(quantile(l.without, 0.95)),
			milliseconds(quantile(l.with, 0.5)), milliseconds(quantile(l.with, 0.95)), fmt.Sprintf("%.3f", l.ratio()))
	}
	return text.String()
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000)
}
