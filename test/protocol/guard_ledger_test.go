package protocol

import (
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// The custom resources of these tests: a Ledger with a status and any field at
// all, and a Vault that is not in a namespace.
var (
	ledgerKind = schema.GroupVersionKind{Group: "books.test.example", Version: "v1", Kind: "Ledger"}
	vaultKind  = schema.GroupVersionKind{Group: "books.test.example", Version: "v1", Kind: "Vault"}
)

var customResources sync.Once

// serveCustomResources makes the API server serve Ledgers and Vaults.
func serveCustomResources(w *suite.World) {
	w.T.Helper()
	customResources.Do(func() {
		for plural, kind := range map[string]schema.GroupVersionKind{"ledgers": ledgerKind, "vaults": vaultKind} {
			w.Must(w.Admin.Create(w.Ctx, definition(plural, kind)))
		}
	})
	for _, kind := range []schema.GroupVersionKind{ledgerKind, vaultKind} {
		w.Eventually("the API server serves "+kind.Kind, func() error {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			return w.Admin.List(w.Ctx, list)
		})
	}
}

// definition is a CustomResourceDefinition, without its Go types: the actors'
// clients need not know them.
func definition(plural string, kind schema.GroupVersionKind) client.Object {
	scope := apiextensionsv1.NamespaceScoped
	if kind == vaultKind {
		scope = apiextensionsv1.ClusterScoped
	}
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": kind.Group,
		"scope": string(scope),
		"names": map[string]any{"plural": plural, "kind": kind.Kind},
		"versions": []any{map[string]any{
			"name": kind.Version, "served": true, "storage": true,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}},
	}}}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName(plural + "." + kind.Group)
	return crd
}

// ledger is a Ledger of the test's namespace, not created yet.
func ledger(w *suite.World, name string, change ...func(client.Object)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"balance": "0"}}}
	u.SetGroupVersionKind(ledgerKind)
	u.SetNamespace(w.Namespace)
	u.SetName(name)
	for _, c := range change {
		c(u)
	}
	return u
}

// getLedger reads a Ledger.
func getLedger(w *suite.World, name string) *unstructured.Unstructured {
	w.T.Helper()
	u := ledger(w, name)
	w.Must(w.Admin.Get(w.Ctx, w.Key(name), u))
	return u
}

// field sets a field of an unstructured object.
func field(value any, path ...string) func(client.Object) {
	return func(o client.Object) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			_ = unstructured.SetNestedField(u.Object, value, path...)
		}
	}
}

// withoutField removes a top-level field of an unstructured object.
func withoutField(name string) func(client.Object) {
	return func(o client.Object) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			delete(u.Object, name)
		}
	}
}

// paid sets the status of a Ledger.
func paid(value string) func(client.Object) { return field(value, "status", "paid") }

// modifyLedger reads a Ledger, changes it, and puts it back.
func modifyLedger(w *suite.World, a *suite.Actor, name string, change ...func(client.Object)) error {
	u := getLedger(w, name)
	for _, c := range change {
		c(u)
	}
	return a.Update(w.Ctx, u)
}

// report writes the status of a Ledger.
func report(w *suite.World, a *suite.Actor, name string, change ...func(client.Object)) error {
	u := getLedger(w, name)
	for _, c := range change {
		c(u)
	}
	return a.Status().Update(w.Ctx, u)
}

// wantPaid checks the status of a Ledger, and that its mark is what it was.
func wantPaid(w *suite.World, name, value, mark string) {
	w.T.Helper()
	u := getLedger(w, name)
	got, _, _ := unstructured.NestedString(u.Object, "status", "paid")
	if got != value || u.GetAnnotations()[v1alpha1.AnnotationToken] != mark {
		w.T.Errorf("%s: paid %q, mark %q; want %q and %q", name, got, u.GetAnnotations()[v1alpha1.AnnotationToken], value, mark)
	}
}

// TestG12CustomResource: the guard treats a custom resource as it does a
// ConfigMap.
func TestG12CustomResource(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	serveCustomResources(s.World)
	suite.Admitted(t, s.second.Create(s.Ctx, ledger(s.World, "books", suite.GuardedBy("payments"), suite.Token("2"))))
	suite.Admitted(t, modifyLedger(s.World, s.second, "books", field("1", "spec", "balance"), write("2/x")))
	suite.Admitted(t, modifyLedger(s.World, s.presents("2"), "books", field("2", "spec", "balance")))
	suite.Admitted(t, s.presents("2").Delete(s.Ctx, ledger(s.World, "books")))
}
