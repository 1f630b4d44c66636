package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// stale is a refusal as client-go returns it.
func stale() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 412, Reason: "FencingTokenStale", Message: "token 1 is stale"}}
}

func TestReportOfErrors(t *testing.T) {
	const remedy = "\nFencingTokenStale: You are not the leader"
	for name, tc := range map[string]struct {
		err    error
		want   string // how it begins
		has    string
		status int
	}{
		"ours":            {errors.New("no"), "error: no\n", "", 1},
		"a refusal":       {fmt.Errorf("configmap/a: %w", stale()), "Error from server (FencingTokenStale): configmap/a: token 1 is stale\n", remedy, 1},
		"the same, twice": {errors.Join(fmt.Errorf("a: %w", stale()), fmt.Errorf("b: %w", stale())), "Error from server (FencingTokenStale): a: token 1 is stale\nError from server (FencingTokenStale): b: token", remedy, 1},
		"nested":          {errors.Join(errors.New("x"), utilerrors.NewAggregate([]error{errors.New("y"), stale()})), "error: x\nerror: y\nError from server (FencingTokenStale): ", remedy, 1},
		"kubectl's":       {failure{"Error from server (NotFound): no such thing\n", 1}, "Error from server (NotFound): no such thing\n", "", 1},
		"kubectl's other": {failure{"", 3}, "", "", 3},
		"no reason":       {&apierrors.StatusError{ErrStatus: metav1.Status{Message: "hm"}}, "Error from server: hm\n", "", 1},
		"not installed": {
			&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "fencedlease.io", Kind: "FencedLease"}, SearchedVersions: []string{"v1alpha1"}},
			"error: FencedLease is not installed in this cluster: `kubectl fence check`", "", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			status := report(&out, tc.err)
			if !strings.HasPrefix(out.String(), tc.want) || !strings.Contains(out.String(), tc.has) || status != tc.status {
				t.Errorf("status %d, and it says:\n%s", status, out.String())
			}
			if strings.Count(out.String(), remedy) > 1 {
				t.Errorf("it says twice what to do:\n%s", out.String())
			}
		})
	}
}

func TestCaught(t *testing.T) {
	if err := caught(func() {}); err != nil {
		t.Error(err)
	}
	if err := caught(func() { panic(failure{"no", 2}) }); err == nil || err.Error() != "no" {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a panic of others was caught")
		}
	}()
	_ = caught(func() { panic("other") })
}
