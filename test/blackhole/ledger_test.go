package blackhole

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fencedlease/fencedlease/test/suite"
)

// The custom resource of these tests: a Ledger, with any field at all.
var ledgerKind = schema.GroupVersionKind{Group: "outage.test.example", Version: "v1", Kind: "Ledger"}

var customResource sync.Once

// serveLedgers makes the API server serve Ledgers.
func serveLedgers(w *suite.World) {
	w.T.Helper()
	customResource.Do(func() {
		crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"group": ledgerKind.Group,
			"scope": "Namespaced",
			"names": map[string]any{"plural": "ledgers", "kind": ledgerKind.Kind},
			"versions": []any{map[string]any{
				"name": ledgerKind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		}}}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName("ledgers." + ledgerKind.Group)
		w.Must(w.Admin.Create(w.Ctx, crd))
	})
	w.Eventually("the API server serves Ledgers", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(ledgerKind)
		return w.Admin.List(w.Ctx, list)
	})
}

// ledger is a Ledger of the test's namespace under FencedLease payments, with token 1,
// not created yet.
func ledger(w *suite.World, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(ledgerKind)
	u.SetNamespace(w.Namespace)
	u.SetName(name)
	suite.GuardedBy("payments")(u)
	suite.Token("1")(u)
	return u
}
