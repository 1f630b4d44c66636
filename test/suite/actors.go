package suite

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
)

// Elsewhere is the same story in another namespace, one that the tests share: leave
// nothing behind there.
func (w *World) Elsewhere(namespace string) *World {
	w.T.Helper()
	there := *w
	there.Namespace = namespace
	there.Admin = there.Actor("admin", w.cluster.Admin)
	return &there
}

// As is the administrator impersonating a user, with every right.
func (w *World) As(user string) *Actor {
	w.T.Helper()
	config := rest.CopyConfig(w.cluster.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	return w.Actor(user, config)
}

// Operator is somebody with the user name of the operator's service account.
func (w *World) Operator() *Actor {
	w.T.Helper()
	return w.As("system:serviceaccount:" + cluster.Namespace + ":" + cluster.ServiceAccount)
}

// APIServer is somebody with the user name of the API server.
func (w *World) APIServer() *Actor {
	w.T.Helper()
	return w.As("system:apiserver")
}

// Rotated is a User with a new certificate: the same name, another identity.
func (a *Actor) Rotated() *Actor {
	a.world.T.Helper()
	config, err := a.world.cluster.UserConfig(a.Name)
	a.world.Must(err)
	return a.world.Actor(a.Name, config)
}

// Identity is the actor's writer identity, by what the API server says of it.
func (a *Actor) Identity() fence.Identity {
	a.world.T.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	a.world.Must(a.Create(a.world.Ctx, review))
	extra := map[string][]string{}
	for key, values := range review.Status.UserInfo.Extra {
		extra[key] = values
	}
	return fence.IdentityOf(review.Status.UserInfo.Username, extra)
}

// Impatient is the actor with a client that does not try again by itself what is
// refused for the moment.
func (a *Actor) Impatient() *Actor {
	a.world.T.Helper()
	config := rest.CopyConfig(a.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
	return a.world.Actor(a.Name, config)
}

type impatient struct{ next http.RoundTripper }

// RoundTrip takes off the header that tells client-go to try again.
func (i impatient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := i.next.RoundTrip(request)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}
