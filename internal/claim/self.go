package claim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// Self finds out who the client is, for impersonating itself with the claim in a
// user extra. It is asked only when a request needs it.
type Self func(ctx context.Context) (rest.ImpersonationConfig, error)

// selfTimeout bounds one review of who the client is.
const selfTimeout = 10 * time.Second

// WhoAmI asks the API server, with a SelfSubjectReview by config, and remembers its
// answer. An error is not remembered.
func WhoAmI(config *rest.Config) Self {
	config = rest.CopyConfig(config)
	// A lock that a caller can stop waiting for.
	turn := make(chan struct{}, 1)
	var known *rest.ImpersonationConfig
	return func(ctx context.Context) (rest.ImpersonationConfig, error) {
		ctx, cancel := context.WithTimeout(ctx, selfTimeout)
		defer cancel()
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return rest.ImpersonationConfig{}, ctx.Err()
		}
		if known != nil {
			return *known, nil
		}
		client, err := authentication.NewForConfig(config)
		if err != nil {
			return rest.ImpersonationConfig{}, err
		}
		review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return rest.ImpersonationConfig{}, err
		}
		known = impersonationOf(review.Status.UserInfo)
		return *known, nil
	}
}

// impersonationOf is how a user impersonates itself. Each thing asked for takes a
// right, so what the API server adds by itself is left out, and so are the uid and
// the user's own extras, a Pod's for instance: they decide nothing where a token is
// presented (claim rule 1 of DESIGN.md section 5).
func impersonationOf(user authenticationv1.UserInfo) *rest.ImpersonationConfig {
	return &rest.ImpersonationConfig{UserName: user.Username, Groups: groupsToAskFor(user)}
}

// Presenting is how somebody impersonates itself with a token.
func Presenting(self rest.ImpersonationConfig, token fence.Token) rest.ImpersonationConfig {
	extra := map[string][]string{v1alpha1.ExtraToken: {token.String()}}
	for key, values := range self.Extra {
		if key != v1alpha1.ExtraToken {
			extra[key] = values
		}
	}
	self.Extra = extra
	return self
}

// Rights are those that it takes to impersonate somebody, most often oneself.
func Rights(as rest.ImpersonationConfig) []authorizationv1.ResourceAttributes {
	user := authorizationv1.ResourceAttributes{Resource: "users", Name: as.UserName}
	if account, ok := strings.CutPrefix(as.UserName, serviceAccount); ok {
		user.Resource = "serviceaccounts"
		user.Namespace, user.Name, _ = strings.Cut(account, ":")
	}
	rights := []authorizationv1.ResourceAttributes{user}
	for _, group := range as.Groups {
		rights = append(rights, authorizationv1.ResourceAttributes{Resource: "groups", Name: group})
	}
	for _, key := range slices.Sorted(maps.Keys(as.Extra)) {
		rights = append(rights, authorizationv1.ResourceAttributes{
			Group: authenticationv1.GroupName, Resource: "userextras", Subresource: key,
		})
	}
	for i := range rights {
		rights[i].Verb = "impersonate"
	}
	return rights
}

// serviceAccount is what the user name of a service account begins with.
const serviceAccount = "system:serviceaccount:"

// groupsToAskFor are the groups of a user that the API server does not put an
// impersonated user into by itself. Those of a service account it adds only where
// no group is asked for.
func groupsToAskFor(user authenticationv1.UserInfo) []string {
	groups := slices.DeleteFunc(slices.Clone(user.Groups), func(group string) bool {
		return group == "system:authenticated"
	})
	other := func(group string) bool { return !strings.HasPrefix(group, "system:serviceaccounts") }
	if strings.HasPrefix(user.Username, serviceAccount) && !slices.ContainsFunc(groups, other) {
		return nil
	}
	return groups
}
