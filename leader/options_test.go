package leader

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestDefaults(t *testing.T) {
	o, err := Options{Namespace: "prod", Name: "payments"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if o.LeaseDuration != 15*time.Second || o.RenewDeadline != 10*time.Second || o.RetryPeriod != 2*time.Second {
		t.Errorf("the timings are %s, %s, %s", o.LeaseDuration, o.RenewDeadline, o.RetryPeriod)
	}
	again, err := Options{Namespace: "prod", Name: "payments"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if o.Identity == "" || o.Identity == again.Identity {
		t.Errorf("two candidates are %q and %q", o.Identity, again.Identity)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no namespace":                      {func(o *Options) { o.Namespace = "" }, "Namespace is required"},
		"no name":                           {func(o *Options) { o.Name = "" }, "Name is required"},
		"a fraction of a second":            {func(o *Options) { o.LeaseDuration = 15500 * time.Millisecond }, "whole number of seconds"},
		"less than a second":                {func(o *Options) { o.LeaseDuration = time.Millisecond }, "at least 1s"},
		"a negative duration":               {func(o *Options) { o.LeaseDuration = -time.Second }, "at least 1s"},
		"a deadline as long as the lease":   {func(o *Options) { o.RenewDeadline = 15 * time.Second }, "must be less than LeaseDuration"},
		"a retry period as the deadline":    {func(o *Options) { o.RetryPeriod = 9 * time.Second }, "must be more than 1.2 times RetryPeriod"},
		"a negative retry period":           {func(o *Options) { o.RetryPeriod = -time.Second }, "RetryPeriod must be more than 0"},
		"a target without a resource":       {func(o *Options) { o.Seal = []Target{{}} }, "needs a version and a resource"},
		"a target of names and a selector":  {func(o *Options) { o.Seal = []Target{{Resource: configMaps, Names: []string{"a"}, Selector: "b"}} }, "not both"},
		"a target whose selector is broken": {func(o *Options) { o.Seal = []Target{{Resource: configMaps, Selector: "a in"}} }, "Selector"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Namespace: "prod", Name: "payments"}
			tc.change(&o)
			if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, and should say %q", err, tc.want)
			}
		})
	}
}

func TestManagerOptionsAreTakenOver(t *testing.T) {
	lease, renew := 30*time.Second, 20*time.Second
	stock := ctrl.Options{LeaderElectionID: "payments", LeaderElectionNamespace: "prod", LeaseDuration: &lease, RenewDeadline: &renew}
	o, err := Options{RetryPeriod: 4 * time.Second}.forManager(stock)
	if err != nil {
		t.Fatal(err)
	}
	if o.Name != "payments" || o.Namespace != "prod" || o.LeaseDuration != lease || o.RenewDeadline != renew || o.RetryPeriod != 4*time.Second {
		t.Errorf("the options are %+v", o)
	}
	other := stock
	other.LeaderElectionResourceLock = "configmaps"
	if _, err := (Options{}).forManager(other); err == nil || !strings.Contains(err.Error(), "only a Lease can be fenced") {
		t.Errorf("another lock: the error is %v", err)
	}
	for name, mine := range map[string]Options{
		"another name":     {Name: "other"},
		"another duration": {LeaseDuration: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := mine.forManager(stock); err == nil || !strings.Contains(err.Error(), "but the manager's options say") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
