package leadership

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/suite"
)

// The custom resource of these tests: a Ledger with a status, and any field at all.
var (
	ledgers    = schema.GroupVersionResource{Group: "leadership.test.example", Version: "v1", Resource: "ledgers"}
	ledgerKind = ledgers.GroupVersion().WithKind("Ledger")
)

var customResource sync.Once

// serveLedgers makes the API server serve Ledgers.
func serveLedgers(w *suite.World) {
	w.T.Helper()
	customResource.Do(func() {
		crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"group": ledgers.Group,
			"scope": "Namespaced",
			"names": map[string]any{"plural": ledgers.Resource, "kind": ledgerKind.Kind},
			"versions": []any{map[string]any{
				"name": ledgers.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		}}}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName(ledgers.Resource + "." + ledgers.Group)
		w.Must(w.Admin.Create(w.Ctx, crd))
	})
	w.Eventually("the API server serves Ledgers", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(ledgerKind)
		return w.Admin.List(w.Ctx, list)
	})
}

// newLedger is a Ledger, not created yet.
func newLedger(namespace, name string, change ...func(client.Object)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(ledgerKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	for _, c := range change {
		c(u)
	}
	return u
}
