package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
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

func TestRights(t *testing.T) {
	const authentication = "authentication.k8s.io"
	cases := map[string]struct {
		as   rest.ImpersonationConfig
		want []authorizationv1.ResourceAttributes
	}{
		"a service account": {
			Presenting(rest.ImpersonationConfig{UserName: "system:serviceaccount:prod:anna"}, 7),
			[]authorizationv1.ResourceAttributes{
				{Verb: "impersonate", Resource: "serviceaccounts", Namespace: "prod", Name: "anna"},
				{Verb: "impersonate", Group: authentication, Resource: "userextras", Subresource: "fencedlease.io/token"},
			},
		},
		"a user with a group and an extra": {
			Presenting(rest.ImpersonationConfig{UserName: "anna", Groups: []string{"ops"}, Extra: map[string][]string{"why": {"x"}}}, 7),
			[]authorizationv1.ResourceAttributes{
				{Verb: "impersonate", Resource: "users", Name: "anna"},
				{Verb: "impersonate", Resource: "groups", Name: "ops"},
				{Verb: "impersonate", Group: authentication, Resource: "userextras", Subresource: "fencedlease.io/token"},
				{Verb: "impersonate", Group: authentication, Resource: "userextras", Subresource: "why"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Rights(tc.as)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
