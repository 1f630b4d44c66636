package soundness

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/internal/claim"
)

// Caller checks what the user of the Checker may do: take a Lease that is fenced,
// and carry a token beside a request.
func (c *Checker) Caller(ctx context.Context) []Result {
	self, err := claim.WhoAmI(c.config)(ctx)
	if err != nil {
		return []Result{failed("you", "the API server does not say who you are: "+err.Error(), "see whether your credentials are valid")}
	}
	return []Result{
		c.mayAcquire(ctx, self.UserName),
		c.mayCarry(ctx, self),
	}
}

// right is something that one may do or not.
type right struct {
	group, resource, subresource, name string
	namespace                          string // "" for cluster-wide
	verb                               string
}

func (r right) String() string {
	resource := r.resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	if r.group != "" {
		resource += "." + r.group
	}
	if r.name != "" {
		resource += " " + r.name
	}
	return r.verb + " " + resource
}

// missing are those rights that the caller does not have.
func (c *Checker) missing(ctx context.Context, rights []right) ([]string, error) {
	var missing []string
	for _, r := range rights {
		attributes := &authorizationv1.ResourceAttributes{
			Namespace: r.namespace, Group: r.group, Resource: r.resource, Subresource: r.subresource, Name: r.name, Verb: r.verb,
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
		if err := c.client.Create(ctx, review); err != nil {
			return nil, err
		}
		if !review.Status.Allowed {
			missing = append(missing, r.String())
		}
	}
	return missing, nil
}

const (
	checkAcquire = "you may acquire"
	checkCarry   = "you may impersonate yourself"
)

// mayAcquire: read a FencedLease, and take its Lease.
func (c *Checker) mayAcquire(ctx context.Context, user string) Result {
	rights := []right{
		{group: v1alpha1.GroupVersion.Group, resource: "fencedleases", namespace: c.namespace, verb: "get"},
		{group: "coordination.k8s.io", resource: "leases", namespace: c.namespace, verb: "get"},
		{group: "coordination.k8s.io", resource: "leases", namespace: c.namespace, verb: "update"},
	}
	missing, err := c.missing(ctx, rights)
	switch {
	case err != nil:
		return failed(checkAcquire, "what you may do cannot be found out: "+err.Error(), "try again")
	case len(missing) > 0:
		return withManifest(
			failed(checkAcquire, "in namespace "+c.namespace+" you may not "+strings.Join(missing, ", nor "), applyManifest),
			manifest{name: "take-fenced-leases", namespace: c.namespace, user: user, rights: rights})
	}
	return ok(checkAcquire, "you may read FencedLeases and take Leases in namespace "+c.namespace)
}

// mayCarry: impersonate oneself, with the token as one more extra.
func (c *Checker) mayCarry(ctx context.Context, self rest.ImpersonationConfig) Result {
	rights := carrying(self)
	missing, err := c.missing(ctx, rights)
	switch {
	case err != nil:
		return failed(checkCarry, "what you may do cannot be found out: "+err.Error(), "try again")
	case len(missing) == 0:
		return ok(checkCarry, "a token can go beside your requests, for deletes, JSON patches and writes to /status")
	}
	return withManifest(
		warning(checkCarry, "you may not "+strings.Join(missing, ", nor ")+
			": without it, deletes, JSON patches and writes to /status of guarded objects cannot present a token", applyManifest),
		manifest{name: "carry-fencing-token", user: self.UserName, rights: rights})
}

const (
	impersonate        = "impersonate"
	authenticationAPI  = "authentication.k8s.io"
	serviceAccountUser = "system:serviceaccount:"
)

// carrying are the rights that it takes to impersonate oneself and remain who one
// is, with a token.
func carrying(self rest.ImpersonationConfig) []right {
	who := right{resource: "users", name: self.UserName, verb: impersonate}
	if rest, ok := strings.CutPrefix(self.UserName, serviceAccountUser); ok {
		namespace, name, _ := strings.Cut(rest, ":")
		who = right{resource: "serviceaccounts", namespace: namespace, name: name, verb: impersonate}
	}
	rights := []right{who}
	for _, group := range self.Groups {
		rights = append(rights, right{resource: "groups", name: group, verb: impersonate})
	}
	extras := []string{v1alpha1.ExtraToken}
	for key := range self.Extra {
		if key != v1alpha1.ExtraToken {
			extras = append(extras, key)
		}
	}
	slices.Sort(extras)
	for _, key := range extras {
		rights = append(rights, right{group: authenticationAPI, resource: "userextras", subresource: key, verb: impersonate})
	}
	return rights
}
