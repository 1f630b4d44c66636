package fence_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
)

func TestLeaseStateOf(t *testing.T) {
	cases := map[string]struct {
		keys fence.Keys
		want fence.LeaseState
	}{
		"no Lease, or one without our label": {
			keys: fence.Keys{},
			want: fence.LeaseUnfenced,
		},
		"annotations without the label are anybody's": {
			keys: fence.Keys{Token: "6", TokenFor: "anna"},
			want: fence.LeaseUnfenced,
		},
		"wrapped by this FencedLease": {
			keys: fence.Keys{FencedBy: payments, Token: "6"},
			want: fence.LeaseOurs,
		},
		"only \"true\" means retired": {
			keys: fence.Keys{FencedBy: payments, Retired: "false"},
			want: fence.LeaseOurs,
		},
		"retired": {
			keys: fence.Keys{FencedBy: payments, Retired: "true"},
			want: fence.LeaseRetired,
		},
		"retired by another, which is gone": {
			keys: fence.Keys{FencedBy: "invoices", Retired: "true"},
			want: fence.LeaseRetired,
		},
		"wrapped by another": {
			keys: fence.Keys{FencedBy: "invoices"},
			want: fence.LeaseTaken,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, fence.LeaseStateOf(tc.keys, payments)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestCurrent(t *testing.T) {
	cases := map[string]struct {
		state *stateBuilder
		want  fence.Token
	}{
		"the Lease and the status agree":             {state: makeState(), want: 6},
		"the status lags":                            {state: makeState().Status(5), want: 6},
		"the status is ahead of a restored Lease":    {state: makeState().Status(9), want: 9},
		"the Lease is lost":                          {state: makeState().Unfenced(), want: 6},
		"the Lease of another says nothing":          {state: makeState().Status(2).TakenBy("invoices"), want: 2},
		"a retired Lease says nothing yet":           {state: makeState().Status(2).Retired(), want: 2},
		"no token was ever minted":                   {state: makeState().NoTerm(), want: fence.None},
		"nothing is known of a missing FencedLease":  {state: makeState().Missing(), want: fence.None},
		"a token that is not canonical is no token":  {state: withLeaseToken("06").Status(2), want: 2},
		"a token beyond the largest one is no token": {state: withLeaseToken("9007199254740992").Status(2), want: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.Obj().Current(); got != tc.want {
				t.Errorf("current: want %s, got %s", tc.want, got)
			}
		})
	}
}

func withLeaseToken(token string) *stateBuilder {
	b := makeState()
	b.state.LeaseKeys.Token = token
	return b
}
