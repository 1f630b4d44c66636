package soundness

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// applyManifest is what to do where a right is missing.
const applyManifest = "have an administrator apply the manifest that comes with this"

// manifest is a role that gives a user rights, and its binding.
type manifest struct {
	name      string
	namespace string // "" for cluster-wide
	user      string
	rights    []right
}

// withManifest is a result with what to apply for it.
func withManifest(r Result, m manifest) Result {
	text, err := m.yaml()
	if err != nil {
		text = "# " + err.Error()
	}
	r.Manifest = text
	return r
}

// yaml is the manifest as kubectl applies it. The types of the API would write
// fields that only a server fills in.
func (m manifest) yaml() (string, error) {
	prefix, metadata := "Cluster", map[string]any{"name": m.name}
	if m.namespace != "" {
		prefix, metadata = "", map[string]any{"name": m.name, "namespace": m.namespace}
	}
	rules := make([]rbacv1.PolicyRule, 0, len(m.rights))
	for _, r := range m.rights {
		rule := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{r.Verb}}
		if r.Subresource != "" {
			rule.Resources[0] += "/" + r.Subresource
		}
		if r.Name != "" {
			rule.ResourceNames = []string{r.Name}
		}
		rules = append(rules, rule)
	}
	var documents []string
	for _, object := range []any{
		map[string]any{
			"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": prefix + "Role", "metadata": metadata, "rules": rules,
		},
		map[string]any{
			"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": prefix + "RoleBinding", "metadata": metadata,
			"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": prefix + "Role", "name": m.name},
			"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": m.user}},
		},
	} {
		document, err := yaml.Marshal(object)
		if err != nil {
			return "", err
		}
		documents = append(documents, string(document))
	}
	return strings.Join(documents, "---\n"), nil
}
