package main

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// builtInGroups are the API groups of Kubernetes itself, as in config/webhook. By
// name: custom resources may have groups that end in .k8s.io as well.
var builtInGroups = []string{
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
	"authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"extensions", "flowcontrol.apiserver.k8s.io", "imagepolicy.k8s.io",
	"internal.apiserver.k8s.io", "lifecycle.k8s.io", "metrics.k8s.io", "custom.metrics.k8s.io",
	"external.metrics.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
	"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
	"storagemigration.k8s.io",
}

// guardable says whether config/webhook has the label take effect on objects of
// a resource: ConfigMaps, Secrets and custom resources. An installation may add
// built-in kinds.
func guardable(resource schema.GroupResource) bool {
	if slices.Contains(builtInGroups, resource.Group) {
		return resource.Group == "" && (resource.Resource == "configmaps" || resource.Resource == "secrets")
	}
	return resource.Group != v1alpha1.GroupVersion.Group
}

// kind is one whose objects can be guarded.
type kind struct {
	schema.GroupVersionResource

	name string // as in a manifest
}

// argument is the kind as kubectl takes it.
func (k kind) argument() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Version + "." + k.Group
}

// groupKind is the kind with its group, as kubectl prints it.
func (k kind) groupKind() string { return schema.GroupKind{Group: k.Group, Kind: k.name}.String() }

// unlisted is a kind, or a group of kinds, that could not be looked at.
type unlisted struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// guardableKinds are those that the server has now, and what it could not say.
func (f *factory) guardableKinds() ([]kind, []unlisted, error) {
	client, err := f.ToDiscoveryClient()
	if err != nil {
		return nil, nil, err
	}
	client.Invalidate() // a kind that is missing in an old answer would be missed without a word
	lists, err := client.ServerPreferredResources()
	var unknown []unlisted
	if failed := new(discovery.ErrGroupDiscoveryFailed); errors.As(err, &failed) {
		for group, why := range failed.Groups {
			if guardable(schema.GroupResource{Group: group.Group}) {
				unknown = append(unknown, unlisted{Resource: "*." + group.String(), Reason: why.Error()})
			}
		}
		slices.SortFunc(unknown, func(a, b unlisted) int { return strings.Compare(a.Resource, b.Resource) })
	} else if err != nil {
		return nil, nil, err
	}

	var kinds []kind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range list.APIResources {
			if r.Namespaced && slices.Contains(r.Verbs, "list") &&
				guardable(schema.GroupResource{Group: version.Group, Resource: r.Name}) {
				kinds = append(kinds, kind{version.WithResource(r.Name), r.Kind})
			}
		}
	}
	return kinds, unknown, nil
}
