package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// What the manifests of config/ call things.
const (
	Namespace      = "fencedlease-system"
	ServiceAccount = "fencedlease"
	webhookService = "fencedlease-webhook"
)

// Patch sees each object before it is applied and may change it. The object is
// left out if it returns false.
type Patch func(*unstructured.Unstructured) bool

// Without leaves out the objects of a kind, such as FlowSchema.
func Without(kind string) Patch {
	return func(object *unstructured.Unstructured) bool { return object.GetKind() != kind }
}

// Install applies config/default, rendered and applied by the real kubectl: all
// but the Deployment, since the manager runs as a process here, with webhooks
// that call it at its URL. Patches apply in order.
//
// It may be called again, to come back to what config/default says.
func (c *Cluster) Install(ctx context.Context, patches ...Patch) error {
	c.say("installing config/default")
	if err := c.webhook.prepare(ctx, c.path("webhook-certs")); err != nil {
		return err
	}
	objects, err := c.render(ctx)
	if err != nil {
		return err
	}
	patches = append([]Patch{Without("Deployment"), c.webhook.patch}, patches...)

	var manifests strings.Builder
	var crds []*unstructured.Unstructured
	for _, object := range objects {
		if !applyPatches(object, patches) {
			continue
		}
		manifest, err := json.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&manifests, "---\n%s\n", manifest)
		if object.GetKind() == "CustomResourceDefinition" {
			crds = append(crds, object)
		}
	}
	if _, err := c.mustKubectl(ctx, manifests.String(), "apply", "--server-side", "--filename=-"); err != nil {
		return err
	}
	for _, crd := range crds {
		if err := c.waitForCRD(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}

// render is what `kubectl kustomize config/default` says.
func (c *Cluster) render(ctx context.Context) ([]*unstructured.Unstructured, error) {
	rendered, err := c.mustKubectl(ctx, "", "kustomize", c.root+"/config/default")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("config/default: %w", err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func applyPatches(object *unstructured.Unstructured, patches []Patch) bool {
	for _, patch := range patches {
		if !patch(object) {
			return false
		}
	}
	return true
}

// waitForCRD waits until the API server serves the kind: a little later than the
// condition Established is set.
func (c *Cluster) waitForCRD(ctx context.Context, crd *unstructured.Unstructured) error {
	var spec struct {
		Group    string
		Names    struct{ Plural string }
		Versions []struct{ Name string }
	}
	data, err := json.Marshal(crd.Object["spec"])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &spec); err != nil {
		return err
	}
	for _, version := range spec.Versions {
		path := []string{"/apis", spec.Group, version.Name, spec.Names.Plural}
		err := c.waitFor(ctx, startTimeout, crd.GetName(), func(ctx context.Context) error {
			err := c.client.Discovery().RESTClient().Get().AbsPath(path...).Do(ctx).Error()
			if apierrors.IsNotFound(err) {
				return errors.New("not served yet")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
