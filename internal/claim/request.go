package claim

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// target is what the path of a request points at.
type target struct {
	group       string // "" is the core group
	resource    string // plural, lower case
	subresource string // "" is the main resource
}

// subresourceStatus is the only subresource that carries the labels of its
// object, so the only one that the fence sees.
const subresourceStatus = "status"

// parseTarget reads a path of the API server's:
//
//	/api/v1/…                 the core group
//	/apis/GROUP/VERSION/…     all others
//
// and after it [namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]]. The server may
// sit below a prefix, so the first segments that read like this count: a prefix
// that itself has "api/v1", or "apis" and three segments, is not understood, with
// one exception. An aggregated API that proxies to another API server, as those of
// multi-cluster control planes do, is such a prefix: the target is behind it. What
// the core group proxies to (pods, services, nodes) are any programs, whose paths
// mean nothing here. It returns false for what is no resource.
func parseTarget(path string) (target, bool) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i := range segments {
		rest := segments[i+1:]
		switch {
		case segments[i] == "api" && len(rest) > 1 && rest[0] == "v1":
			return resourceOf("", rest[1:]), true
		case segments[i] == "apis" && len(rest) > 2:
			found := resourceOf(rest[0], rest[2:])
			if found.subresource == "proxy" {
				if behind, ok := parseTarget(strings.Join(rest[2:], "/")); ok {
					return behind, true
				}
			}
			return found, true
		}
	}
	return target{}, false
}

// resourceOf reads what follows group and version in a path.
func resourceOf(group string, segments []string) target {
	// A namespace is a resource too, with subresources of its own.
	if segments[0] == "namespaces" && len(segments) > 2 && segments[2] != subresourceStatus && segments[2] != "finalize" {
		segments = segments[2:]
	}
	t := target{group: group, resource: segments[0]}
	if len(segments) > 2 {
		t.subresource = segments[2]
	}
	return t
}

// guardable says whether a guard could ever apply. Reviews only ask. Elections and
// recorders must work without a term, or none would ever begin, nor its end be told.
func (t target) guardable() bool {
	switch t.group {
	case "authentication.k8s.io", "authorization.k8s.io":
		return false
	case "", "events.k8s.io":
		return t.resource != "events"
	case "coordination.k8s.io":
		return t.resource != "leases"
	}
	return true
}

// unlabelled are the kinds that no guard label reaches, by group (DESIGN.md section
// 5): Kubernetes itself writes them all the time.
var unlabelled = map[string][]string{
	"":                 {"pods", "nodes", "endpoints", "persistentvolumes", "persistentvolumeclaims"},
	"apps":             {"replicasets", "controllerrevisions"},
	"discovery.k8s.io": {"endpointslices"},
}

// reached says whether a guard label of the object could reach this write. A token
// on any other would be noise.
func (t target) reached() bool {
	return t.group != "fencedlease.io" &&
		!slices.Contains(unlabelled[t.group], t.resource) &&
		(t.subresource == "" || t.subresource == subresourceStatus)
}

// isRead says whether a request changes nothing.
func isRead(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// mediaType is the type of a body without its parameters; "" if it is unreadable.
func mediaType(header http.Header) string {
	parsed, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return parsed
}

// isObject says whether a body of this type is an object, or a part of one, that
// has its annotations where an object has them.
func isObject(method, media string) bool {
	switch method {
	case http.MethodPost, http.MethodPut:
		// Without a type, the API server takes JSON.
		return media == "" || media == "application/json" || media == "application/yaml"
	case http.MethodPatch:
		return media == string(types.ApplyYAMLPatchType) || isMergePatch(media)
	}
	return false
}

// isMergePatch says whether null in a patch of this type removes what is stored.
func isMergePatch(media string) bool {
	return media == string(types.MergePatchType) || media == string(types.StrategicMergePatchType)
}
