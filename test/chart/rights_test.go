package chart

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// right is one that a role gives, or that a request needs. Namespace and name are
// empty where it is for all.
type right struct {
	verb, group, resource, namespace, name string
}

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.name != "" {
		text += " " + r.name
	}
	if r.namespace != "" {
		text += " in " + r.namespace
	}
	return text
}

// kind is what requests that need it have in common, wherever and whatever they are
// about.
func (r right) kind() string {
	return right{verb: r.verb, group: r.group, resource: r.resource}.String()
}

// covers says whether the right is enough for what a request needs.
func (r right) covers(need right) bool {
	return r.verb == need.verb && r.group == need.group && r.resource == need.resource &&
		(r.namespace == "" || r.namespace == need.namespace) && (r.name == "" || r.name == need.name)
}

// granted are the rights that a role gives.
func granted(t *testing.T, role *unstructured.Unstructured) []right {
	t.Helper()
	var rights []right
	for _, rule := range rulesOf(t, role) {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						rights = append(rights, right{verb, group, resource, role.GetNamespace(), name})
					}
				}
			}
		}
	}
	return rights
}

// request is a line of the audit log.
type request struct {
	Verb           string
	RequestURI     string
	User           struct{ Username string }
	ObjectRef      *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	Annotations    map[string]string
}

// needs is the right that the request needs; discovery needs none.
func (r request) needs() right {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return right{r.Verb, r.ObjectRef.APIGroup, resource, r.ObjectRef.Namespace, r.ObjectRef.Name}
}

// requests are those that the API server has recorded, of one service account.
func requests(t *testing.T, serviceAccount string) []request {
	t.Helper()
	data, err := os.ReadFile(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	var found []request
	for line := range strings.Lines(string(data)) {
		var r request
		if json.Unmarshal([]byte(line), &r) != nil {
			continue // still being written
		}
		if r.User.Username == "system:serviceaccount:"+namespace+":"+serviceAccount {
			found = append(found, r)
		}
	}
	return found
}

// allowed says whether the API server let the request through.
func (r request) allowed() bool { return r.Annotations["authorization.k8s.io/decision"] == "allow" }

// noDenials: the rights of the manager were enough for all that it did, but for so
// many requests in the beginning.
func noDenials(t *testing.T, before int) {
	t.Helper()
	made := requests(t, "fencedlease")[before:]
	if len(made) < 10 {
		t.Errorf("there are %d requests", len(made))
	}
	for _, r := range made {
		if !r.allowed() {
			t.Errorf("the manager may not %s %s: %s", r.Verb, r.RequestURI, r.Annotations["authorization.k8s.io/reason"])
		}
	}
}
