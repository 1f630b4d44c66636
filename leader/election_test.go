package leader

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The election's own timeout, rate and connections are not those of its user.
func TestNewLeavesTheConfigAlone(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:6443", QPS: 1, Burst: 1, RateLimiter: flowcontrol.NewTokenBucketRateLimiter(1, 1)}
	before := rest.CopyConfig(config)
	election, err := New(config, Options{Namespace: "prod", Name: "payments", Identity: me})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := election.NewClient(config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	if wrapped := election.Config(config); wrapped.QPS != 1 || wrapped.RateLimiter != config.RateLimiter || wrapped.Timeout != 0 {
		t.Errorf("the config of its clients is %+v", wrapped)
	}
	if own := ownConfig(config, election.options); own.RateLimiter != nil || own.QPS > 0 || own.Timeout != DefaultRenewDeadline/2 || own.Dial == nil {
		t.Errorf("its own config is %+v", own)
	}
	if config.Dial != nil || config.WrapTransport != nil {
		t.Error("the config has another way of dialling now")
	}
	if !equality.Semantic.DeepEqual(config, before) {
		t.Errorf("the config is now\n%+v, and was\n%+v", config, before)
	}
}

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

// A process may make several elections for one Lease, one after the other, as the
// tests of a controller do. The metrics are those of the last.
func TestMetricsOfTheLastElection(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		options := Options{Namespace: "prod", Name: "payments", Identity: me, Metrics: registry}
		election, err := New(&rest.Config{Host: "https://127.0.0.1:6443"}, options)
		if err != nil {
			t.Fatal(err)
		}
		election.metrics.seals.Inc()
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if len(family.GetMetric()) != 1 {
			t.Errorf("%s has %d metrics", family.GetName(), len(family.GetMetric()))
		}
		if family.GetName() == "fencedlease_leader_seals_total" && family.GetMetric()[0].GetCounter().GetValue() != 1 {
			t.Errorf("the seals are %v, want those of the last election", family.GetMetric()[0])
		}
	}
	if len(families) < 4 {
		t.Errorf("there are %d families of metrics", len(families))
	}
}
