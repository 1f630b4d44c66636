package main

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
)

func TestStateOf(t *testing.T) {
	for name, tc := range map[string]struct {
		mark, current fence.Token
		want          markState
	}{
		"never written with a token":    {fence.None, 7, unmarked},
		"before the first term":         {fence.None, fence.None, unmarked},
		"by an earlier term":            {6, 7, behind},
		"by the current term":           {7, 7, sealed},
		"ahead of the counter":          {8, 7, regressed},
		"a mark, and no term ever":      {1, fence.None, regressed},
		"the largest token there is":    {fence.MaxToken, fence.MaxToken, sealed},
		"one behind the largest of all": {fence.MaxToken - 1, fence.MaxToken, behind},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(tc.mark, tc.current); got != tc.want {
				t.Errorf("stateOf(%s, %s) = %s, want %s", tc.mark, tc.current, got, tc.want)
			}
		})
	}
}

func TestMarkOf(t *testing.T) {
	for value, want := range map[string]fence.Token{"7": 7, "07": fence.None, "": fence.None, "x": fence.None} {
		if got := markOf(fence.Object{Token: &value}); got != want {
			t.Errorf("markOf(%q) = %s, want %s", value, got, want)
		}
	}
	if got := markOf(fence.Object{}); got != fence.None {
		t.Errorf("markOf(nothing) = %s", got)
	}
}
