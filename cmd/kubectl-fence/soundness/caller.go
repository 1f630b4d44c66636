package soundness

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

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
		c.mayAcquire(ctx),
		c.mayCarry(ctx, self),
	}
}

// right is something that one may do or not.
type right struct {
	group, resource, subresource, name string
	namespaced                         bool
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
			Group: r.group, Resource: r.resource, Subresource: r.subresource, Name: r.name, Verb: r.verb,
		}
		if r.namespaced {
			attributes.Namespace = c.namespace
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
func (c *Checker) mayAcquire(ctx context.Context) Result {
	leases := "coordination.k8s.io"
	missing, err := c.missing(ctx, []right{
		{group: v1alpha1.GroupVersion.Group, resource: "fencedleases", namespaced: true, verb: "get"},
		{group: leases, resource: "leases", namespaced: true, verb: "get"},
		{group: leases, resource: "leases", namespaced: true, verb: "update"},
		{group: leases, resource: "leases", namespaced: true, verb: "patch"},
	})
	switch {
	case err != nil:
		return failed(checkAcquire, "what you may do cannot be found out: "+err.Error(), "try again")
	case len(missing) > 0:
		return failed(checkAcquire, "in namespace "+c.namespace+" you may not "+strings.Join(missing, ", nor "),
			"have an administrator bind you to a role that says so; the cluster's own role edit does, once FencedLease is installed, but for Leases")
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
	manifest, err := carryRole(self.UserName, rights)
	if err != nil {
		return failed(checkCarry, err.Error(), "")
	}
	result := warning(checkCarry, "you may not "+strings.Join(missing, ", nor ")+
		": without it, deletes, JSON patches and writes to /status of guarded objects cannot present a token",
		"have an administrator apply the manifest (it is in -o json, too)")
	result.Manifest = manifest
	return result
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
		_, name, _ := strings.Cut(rest, ":")
		who = right{resource: "serviceaccounts", name: name, verb: impersonate}
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

// carryRole is the role, and its binding, that gives a user these rights.
func carryRole(user string, rights []right) (string, error) {
	name := "carry-fencing-token"
	role := map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole",
		"metadata": map[string]any{"name": name},
	}
	var rules []rbacv1.PolicyRule
	for _, r := range rights {
		rule := rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}}
		if r.subresource != "" {
			rule.Resources[0] += "/" + r.subresource
		}
		if r.name != "" {
			rule.ResourceNames = []string{r.name}
		}
		rules = append(rules, rule)
	}
	role["rules"] = rules
	subject := map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}
	binding := map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": name},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": name},
		"subjects": []any{subject},
	}
	var documents []string
	for _, object := range []any{role, binding} {
		document, err := yaml.Marshal(object)
		if err != nil {
			return "", err
		}
		documents = append(documents, string(document))
	}
	return strings.Join(documents, "---\n"), nil
}
