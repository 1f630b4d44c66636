package chart

import (
	"encoding/json"
	"os"
	"slices"
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

// noDenials: the rights of the manager were enough for all that it did, but for so
// many requests in the beginning.
func noDenials(t *testing.T, before int) {
	t.Helper()
	made := requests(t, "fencedlease")[before:]
	if len(made) < 10 {
		t.Errorf("there are %d requests", len(made))
	}
	for _, r := range made {
		if r.Annotations["authorization.k8s.io/decision"] != "allow" {
			t.Errorf("the manager may not %s %s: %s", r.Verb, r.RequestURI, r.Annotations["authorization.k8s.io/reason"])
		}
	}
}

// everybodys are what every service account may do, whatever its roles.
var everybodys = []right{{verb: "create", group: "authentication.k8s.io", resource: "selfsubjectreviews"}}

// allRightsUsed: every right that the roles of these service accounts give was used,
// and no request was allowed for another reason than these roles.
func allRightsUsed(t *testing.T, accounts ...string) {
	t.Helper()
	rendered := releaseManifest(t)
	for _, account := range accounts {
		rights := slices.Concat(granted(t, rendered.get(t, "ClusterRole/"+account)), granted(t, rendered.get(t, "Role/"+account)))
		used := make([]bool, len(rights))
		made := requests(t, account)
		for _, r := range made {
			if r.ObjectRef == nil || r.ObjectRef.Resource == "" {
				continue // discovery
			}
			need := r.needs()
			covered := slices.ContainsFunc(everybodys, func(e right) bool { return e.covers(need) })
			for i := range rights {
				if rights[i].covers(need) {
					covered, used[i] = true, true
				}
			}
			if !covered {
				t.Errorf("no role of %s has the right to %s: %s", account, need, r.Annotations["authorization.k8s.io/reason"])
			}
		}
		for i := range rights {
			if !used[i] {
				t.Errorf("%s never needed the right to %s", account, rights[i])
			}
		}
		t.Logf("%s: %d rights, %d requests", account, len(rights), len(made))
	}
}
