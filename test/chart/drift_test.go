package chart

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// TestConfigAndChartAreTheSame: what `kubectl kustomize config/default` renders and
// what the chart does, in the same namespace, are the same objects with the same
// content, the labels and annotations aside that mark those of a release.
func TestConfigAndChartAreTheSame(t *testing.T) {
	kubectl, err := cluster.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), kubectl, "kustomize", path(t, "config", "default")).Output()
	if err != nil {
		t.Fatal(err)
	}
	config := parse(t, string(text))
	if len(config) < 15 {
		t.Fatalf("%d objects in\n%s", len(config), text)
	}
	rendered, err := helm(t.Context(), t, "template", release, chartDir(t), "--namespace="+cluster.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	chart := parse(t, rendered)

	// Helm makes the namespace, if it is told to.
	delete(config, "Namespace/"+cluster.Namespace)
	// The check and the test are Helm's alone: hooks.
	maps.DeleteFunc(chart, func(_ string, object *unstructured.Unstructured) bool {
		return object.GetAnnotations()["helm.sh/hook"] != ""
	})

	if diff := cmp.Diff(slices.Sorted(maps.Keys(config)), slices.Sorted(maps.Keys(chart))); diff != "" {
		t.Fatalf("other objects (-config +chart):\n%s", diff)
	}
	for key := range config {
		if diff := cmp.Diff(plain(t, config[key]), plain(t, chart[key])); diff != "" {
			t.Errorf("%s (-config +chart):\n%s", key, diff)
		}
	}
}

// ofRelease are the labels and annotations that only the objects of a release have.
var ofRelease = []string{
	"app.kubernetes.io/name", // on all objects; in config/ on what is selected
	"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by",
	"helm.sh/chart", "helm.sh/resource-policy",
}

// plain is an object without what a release puts on it, and with what it leaves
// to the API server's defaults.
func plain(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	copied := object.DeepCopy().Object
	for _, field := range []string{"labels", "annotations"} {
		metadata, ok := copied["metadata"].(map[string]any)
		if !ok {
			t.Fatalf("%v", copied)
		}
		values, ok := metadata[field].(map[string]any)
		if !ok {
			continue
		}
		maps.DeleteFunc(values, func(key string, _ any) bool { return slices.Contains(ofRelease, key) })
		if len(values) == 0 {
			delete(metadata, field)
		}
	}
	if webhooks, ok := copied["webhooks"].([]any); ok {
		for _, webhook := range webhooks {
			conditions, _ := field(webhook, "matchConditions").([]any)
			for i := range conditions {
				// kustomize breaks the lines of CEL anew. No string in it has a space.
				expression, ok := field(conditions[i], "expression").(string)
				condition, isMap := conditions[i].(map[string]any)
				if !ok || !isMap {
					t.Fatalf("a condition is %v", conditions[i])
				}
				condition["expression"] = strings.Join(strings.Fields(expression), " ")
			}
		}
	}
	if object.GetKind() == "Deployment" {
		// The default for an image by tag, which config/ leaves to the API server.
		if spec, ok := field(copied, container[:len(container)-1]).(map[string]any); ok && spec["imagePullPolicy"] == "IfNotPresent" {
			delete(spec, "imagePullPolicy")
		}
	}
	return copied
}

// rulesOf are the rules of a Role or ClusterRole.
func rulesOf(t *testing.T, role *unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	var typed rbacv1.ClusterRole // a Role is the same in this
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &typed); err != nil {
		t.Fatal(err)
	}
	if len(typed.Rules) == 0 {
		t.Fatalf("%s has no rules", role.GetName())
	}
	return typed.Rules
}

// arguments are those of the manager.
func arguments(t *testing.T, rendered objects) []string {
	t.Helper()
	list, ok := field(rendered.get(t, deployment), container+"args").([]any)
	if !ok {
		t.Fatal("the manager has no arguments")
	}
	var args []string
	for _, item := range list {
		arg, ok := item.(string)
		if !ok || !strings.HasPrefix(arg, "--") {
			t.Fatalf("an argument is %v", item)
		}
		args = append(args, arg)
	}
	return args
}
