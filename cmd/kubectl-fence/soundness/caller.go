package soundness

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
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
type right = authorizationv1.ResourceAttributes

// words says what a right allows.
func words(r right) string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Name != "" {
		resource += " " + r.Name
	}
	return r.Verb + " " + resource
}

// missing are those rights that the caller does not have.
func (c *Checker) missing(ctx context.Context, rights []right) ([]string, error) {
	var missing []string
	for _, r := range rights {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &r}}
		if err := c.client.Create(ctx, review); err != nil {
			return nil, err
		}
		if !review.Status.Allowed {
			missing = append(missing, words(r))
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
		{Group: v1alpha1.GroupVersion.Group, Resource: "fencedleases", Namespace: c.namespace, Verb: "get"},
		{Group: "coordination.k8s.io", Resource: "leases", Namespace: c.namespace, Verb: "get"},
		{Group: "coordination.k8s.io", Resource: "leases", Namespace: c.namespace, Verb: "update"},
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

// anyToken stands for those to come: rights do not depend on the number.
const anyToken fence.Token = 1

// mayCarry: impersonate oneself, with the token as one more extra.
func (c *Checker) mayCarry(ctx context.Context, self rest.ImpersonationConfig) Result {
	rights := claim.Rights(claim.Presenting(self, anyToken))
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
