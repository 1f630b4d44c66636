package load

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

const (
	floodWriters  = 80
	floodAccounts = 8 // service accounts that the writers share
	floodTime     = 10 * time.Second
)

// fewSeats makes an API server that so many writers can fill, on any machine: the
// level that all service accounts share has some eight seats, and those that it
// borrows.
var fewSeats = []string{"--max-requests-inflight=10", "--max-mutating-requests-inflight=10"}

// TestPriorityLevel: a flood of guarded writes in one namespace starves neither
// another namespace nor the operator, nor itself, since the operator's live reads
// have seats of their own. The same flood without the FlowSchema and the
// PriorityLevelConfiguration of config/flowcontrol shows what they are for.
func TestPriorityLevel(t *testing.T) {
	var with, without *outcome
	t.Run("with", func(t *testing.T) { with = flood(t) })
	t.Run("without", func(t *testing.T) {
		without = flood(t, cluster.Without("FlowSchema"), cluster.Without("PriorityLevelConfiguration"))
	})
	if t.Failed() {
		return
	}
	t.Logf("done in %s, with %d writers on an API server with %v; in brackets: refused, and the slowest", floodTime, floodWriters, fewSeats)
	t.Logf("%-44s %24s %24s", "", "with flowcontrol", "without")
	for _, row := range []struct {
		what          string
		with, without *tally
		times         int // as many, at least
	}{
		{"guarded writes of the flooded namespace", &with.flooded, &without.flooded, 5},
		{"plain writes of another namespace", &with.neighbour, &without.neighbour, 2},
		{"hand-overs of a third, until in the status", &with.operator, &without.operator, 2},
	} {
		t.Logf("%-44s %24s %24s", row.what, row.with, row.without)
		if row.with.done < row.times*max(1, row.without.done) {
			t.Errorf("%s: want %d times as many with config/flowcontrol", row.what, row.times)
		}
	}
}

// outcome is what got done during a flood.
type outcome struct{ flooded, neighbour, operator tally }

// flood lets writers of one namespace write as fast as they can, in a cluster of
// their own, while others do their work.
func flood(t *testing.T, patches ...cluster.Patch) *outcome {
	t.Helper()
	c := smallCluster(t, patches...)
	busy, quiet, third := suite.In(t, c), suite.In(t, c), suite.In(t, c)
	writers := floodingWriters(busy)
	neighbour := plainWriter(quiet)
	operator := handOverUntilInStatus(third)

	t.Logf("%d writers write for %s", floodWriters, floodTime)
	ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), logr.Discard()), floodTime)
	defer cancel()
	result := &outcome{}
	var all workers
	for _, writer := range writers {
		all.work(ctx, &result.flooded, writer)
	}
	all.work(ctx, &result.neighbour, neighbour)
	all.work(ctx, &result.operator, operator)
	all.Wait()
	return result
}

// smallCluster starts an API server with few seats, and FencedLease.
func smallCluster(t *testing.T, patches ...cluster.Patch) *cluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{APIServerArgs: fewSeats, NoControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Install(ctx, patches...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartManager(ctx, cluster.ManagerOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}
