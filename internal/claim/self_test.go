package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
)

func TestGroupsToAskFor(t *testing.T) {
	cases := map[string]struct {
		user   string
		groups []string
		want   []string
	}{
		"of a user":                                      {user: "anna", groups: []string{"ops", "system:authenticated"}, want: []string{"ops"}},
		"of a service account":                           {user: "system:serviceaccount:prod:anna", groups: []string{"system:serviceaccounts", "system:serviceaccounts:prod", "system:authenticated"}},
		"of a service account that is in others":         {user: "system:serviceaccount:prod:anna", groups: []string{"system:serviceaccounts", "ops"}, want: []string{"system:serviceaccounts", "ops"}},
		"of a user in the group of all service accounts": {user: "anna", groups: []string{"system:serviceaccounts"}, want: []string{"system:serviceaccounts"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := groupsToAskFor(authenticationv1.UserInfo{Username: tc.user, Groups: tc.groups})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
