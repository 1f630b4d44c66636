package claim

import (
	"context"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
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

// impersonationOf is how a user impersonates itself and remains who it is: a Pod
// keeps the extras that make it one. Each thing asked for takes a right, so what
// the API server adds by itself is left out, and the uid, which decides nothing.
func impersonationOf(user authenticationv1.UserInfo) *rest.ImpersonationConfig {
	self := &rest.ImpersonationConfig{
		UserName: user.Username,
		Groups:   groupsToAskFor(user),
		Extra:    map[string][]string{},
	}
	for key, values := range user.Extra {
		self.Extra[key] = values
	}
	return self
}

// groupsToAskFor are the groups of a user that the API server does not put an
// impersonated user into by itself. Those of a service account it adds only where
// no group is asked for.
func groupsToAskFor(user authenticationv1.UserInfo) []string {
	groups := slices.DeleteFunc(slices.Clone(user.Groups), func(group string) bool {
		return group == "system:authenticated"
	})
	other := func(group string) bool { return !strings.HasPrefix(group, "system:serviceaccounts") }
	if strings.HasPrefix(user.Username, "system:serviceaccount:") && !slices.ContainsFunc(groups, other) {
		return nil
	}
	return groups
}
