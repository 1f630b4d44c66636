package plugin

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// secondTerm is where most stories begin: a ConfigMap `state` that the first
// holder of `payments` wrote under token 1, and a second holder with token 2.
func secondTerm(t *testing.T) (*suite.World, terminal) {
	t.Helper()
	w := suite.New(t)
	w.FencedLease("payments")
	w.Pod("first").Acquire("payments", "first")
	w.Guarded("state", "payments", 1)
	w.Pod("second").Acquire("payments", "second")
	return w, at(w, w.Admin)
}

// want checks a ConfigMap: the FencedLease that it is under, its mark, and its
// balance.
func want(w *suite.World, name, guardedBy, mark, balance string) {
	w.T.Helper()
	cm := w.GetConfigMap(name)
	if cm.Labels[v1alpha1.LabelGuardedBy] != guardedBy || cm.Annotations[v1alpha1.AnnotationToken] != mark || cm.Data["balance"] != balance {
		w.T.Errorf("%s is under %q with mark %q and balance %q, want %q, %q, %q", name,
			cm.Labels[v1alpha1.LabelGuardedBy], cm.Annotations[v1alpha1.AnnotationToken], cm.Data["balance"], guardedBy, mark, balance)
	}
}

// create creates ConfigMaps that are not guarded.
func create(w *suite.World, names ...string) {
	w.T.Helper()
	for _, name := range names {
		w.Must(w.Admin.Create(w.Ctx, w.ConfigMap(name)))
	}
}

// widget is the kind of custom resource that a story has.
var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// widgets defines the kind, and waits until it is served.
func widgets(w *suite.World) {
	w.T.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": widget.Group,
		"scope": string(apiextensionsv1.NamespaceScoped),
		"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": widget.Kind},
		"versions": []any{map[string]any{
			"name": widget.Version, "served": true, "storage": true,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}},
	}}}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName("widgets." + widget.Group)
	w.Must(w.Admin.Create(w.Ctx, crd))
	w.T.Cleanup(func() { _ = client.IgnoreNotFound(w.Admin.Delete(w.Ctx, crd)) })
	w.Eventually("the API server serves widgets", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(widget)
		return w.Admin.List(w.Ctx, list, client.InNamespace(w.Namespace))
	})
}

// getWidget reads a Widget.
func getWidget(w *suite.World, name string) *unstructured.Unstructured {
	w.T.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(widget)
	w.Must(w.Admin.Get(w.Ctx, w.Key(name), u))
	return u
}

// createWidget creates a Widget.
func createWidget(w *suite.World, name string, change ...func(client.Object)) {
	w.T.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(widget)
	u.SetNamespace(w.Namespace)
	u.SetName(name)
	for _, c := range change {
		c(u)
	}
	w.Must(w.Admin.Create(w.Ctx, u))
}
