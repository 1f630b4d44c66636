package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTarget(t *testing.T) {
	cases := map[string]struct {
		path   string
		want   target
		wantOK bool
	}{
		"a core object":                      {path: "/api/v1/namespaces/prod/configmaps/a", want: target{resource: "configmaps"}, wantOK: true},
		"a core collection":                  {path: "/api/v1/namespaces/prod/configmaps", want: target{resource: "configmaps"}, wantOK: true},
		"an object of a group":               {path: "/apis/apps/v1/namespaces/prod/deployments/a", want: target{group: "apps", resource: "deployments"}, wantOK: true},
		"a subresource":                      {path: "/apis/apps/v1/namespaces/prod/deployments/a/scale", want: target{group: "apps", resource: "deployments", subresource: "scale"}, wantOK: true},
		"a cluster-scoped object":            {path: "/apis/example.com/v1/clusters/a", want: target{group: "example.com", resource: "clusters"}, wantOK: true},
		"the status of one":                  {path: "/apis/example.com/v1/clusters/a/status", want: target{group: "example.com", resource: "clusters", subresource: "status"}, wantOK: true},
		"a namespace":                        {path: "/api/v1/namespaces/prod", want: target{resource: "namespaces"}, wantOK: true},
		"the namespaces":                     {path: "/api/v1/namespaces", want: target{resource: "namespaces"}, wantOK: true},
		"the end of a namespace":             {path: "/api/v1/namespaces/prod/finalize", want: target{resource: "namespaces", subresource: "finalize"}, wantOK: true},
		"the status of a namespace":          {path: "/api/v1/namespaces/prod/status", want: target{resource: "namespaces", subresource: "status"}, wantOK: true},
		"a namespace called apis":            {path: "/api/v1/namespaces/apis/configmaps/a/b", want: target{resource: "configmaps", subresource: "b"}, wantOK: true},
		"an object called status":            {path: "/api/v1/namespaces/prod/configmaps/status", want: target{resource: "configmaps"}, wantOK: true},
		"below a prefix":                     {path: "/k8s/clusters/c-1/api/v1/namespaces/prod/secrets/a", want: target{resource: "secrets"}, wantOK: true},
		"below a prefix with api in it":      {path: "/api/kube/apis/apps/v1/namespaces/prod/deployments/a", want: target{group: "apps", resource: "deployments"}, wantOK: true},
		"through a multi-cluster proxy":      {path: "/apis/cluster.example.com/v1/clusters/m1/proxy/api/v1/namespaces/prod/secrets/a", want: target{resource: "secrets"}, wantOK: true},
		"through a proxy to something else":  {path: "/apis/example.com/v1/things/a/proxy/metrics", want: target{group: "example.com", resource: "things", subresource: "proxy"}, wantOK: true},
		"through a Service, to any program":  {path: "/api/v1/namespaces/prod/services/web/proxy/api/v1/users", want: target{resource: "services", subresource: "proxy"}, wantOK: true},
		"a trailing slash":                   {path: "/api/v1/namespaces/prod/secrets/", want: target{resource: "secrets"}, wantOK: true},
		"discovery":                          {path: "/apis/apps/v1"},
		"discovery of the core group":        {path: "/api/v1"},
		"no resource":                        {path: "/healthz"},
		"the root":                           {path: "/"},
		"a version that the core never had ": {path: "/api/v2/things"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := parseTarget(tc.path)
			if ok != tc.wantOK {
				t.Errorf("a resource: %t, want %t", ok, tc.wantOK)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
