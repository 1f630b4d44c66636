package protocol

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// guardedBadly labels an object in a way that the guard refuses where it looks.
func guardedBadly(o client.Object) {
	suite.GuardedBy("nobody")(o)
	suite.Token("none")(o)
}

// TestReachOut: a label out of reach has no effect: Kubernetes itself writes
// these, or they are in no namespace.
func TestReachOut(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	serveCustomResources(w)
	name := metav1.ObjectMeta{Namespace: w.Namespace, Name: "labelled"}
	global := metav1.ObjectMeta{Name: w.Namespace + "-labelled"}
	podSpec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}
	selector := map[string]string{"app": "labelled"}
	vault := &unstructured.Unstructured{}
	vault.SetGroupVersionKind(vaultKind)
	vault.SetName(global.Name)

	for kind, object := range map[string]client.Object{
		"Pod":   &corev1.Pod{ObjectMeta: name, Spec: podSpec},
		"Lease": &coordinationv1.Lease{ObjectMeta: name},
		"Deployment": &appsv1.Deployment{ObjectMeta: name, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: podSpec},
		}},
		"Service":                                &corev1.Service{ObjectMeta: name, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		"ServiceAccount":                         &corev1.ServiceAccount{ObjectMeta: name},
		"Role":                                   &rbacv1.Role{ObjectMeta: name},
		"FencedLease":                            &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "fenced"}},
		"ClusterRole":                            &rbacv1.ClusterRole{ObjectMeta: global},
		"Namespace":                              &corev1.Namespace{ObjectMeta: global},
		"a custom resource in no namespace":      vault,
		"ConfigMap of the operator's namespace":  &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: global.Name}},
		"Secret of the operator's own namespace": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: global.Name}},
	} {
		t.Run(kind, func(t *testing.T) {
			guardedBadly(object)
			suite.Admitted(t, w.Admin.Create(w.Ctx, object))
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"fencedlease.io/token":"0","team":"blue"}}}`))
			suite.Admitted(t, w.Admin.Patch(w.Ctx, object, patch))
			suite.Admitted(t, w.Admin.Delete(w.Ctx, object))
		})
	}
}

// TestReachStatusOfBuiltIns: nor has it on the status of a Pod.
func TestReachStatusOfBuiltIns(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "labelled"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	guardedBadly(pod)
	suite.Admitted(t, w.Admin.Create(w.Ctx, pod))
	pod.Status.Phase = corev1.PodRunning
	suite.Admitted(t, w.Admin.Status().Update(w.Ctx, pod))
}

// TestReachIn: ConfigMaps, Secrets and custom resources.
func TestReachIn(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	serveCustomResources(s.World)
	for kind, fresh := range map[string]func() client.Object{
		"ConfigMap": func() client.Object { return s.ConfigMap("guarded") },
		"Secret": func() client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "guarded"}}
		},
		"custom resource": func() client.Object { return ledger(s.World, "guarded") },
	} {
		t.Run(kind, func(t *testing.T) {
			object := fresh()
			guardedBadly(object)
			suite.Refused(t, s.Admin.Create(s.Ctx, object), 422, fence.ReasonInvalid, `"none"`)

			object = fresh()
			suite.GuardedBy("payments")(object)
			suite.Token("2")(object)
			suite.Admitted(t, s.Admin.Create(s.Ctx, object))
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"team":"blue"}}}`))
			suite.Refused(t, s.first.Patch(s.Ctx, object.DeepCopyObject().(client.Object), patch), 428, fence.ReasonRequired)
			suite.Refused(t, s.first.Delete(s.Ctx, object), 428, fence.ReasonRequired)
			suite.Admitted(t, s.second.Patch(s.Ctx, object, patch))
			suite.Admitted(t, s.second.Delete(s.Ctx, object))
		})
	}
}

var quoted = regexp.MustCompile(`'([^']*)'`)

// groupsIn are the built-in API groups that the reach of a webhook names.
func groupsIn(t *testing.T, conditions []admissionregistrationv1.MatchCondition) []string {
	t.Helper()
	for _, condition := range conditions {
		if condition.Name != "in-reach" {
			continue
		}
		list, _, found := strings.Cut(condition.Expression, "?")
		if !found || !strings.HasPrefix(strings.TrimSpace(list), "request.resource.group in [") {
			t.Fatalf("unexpected expression: %s", condition.Expression)
		}
		var groups []string
		for _, match := range quoted.FindAllStringSubmatch(list, -1) {
			groups = append(groups, match[1])
		}
		return groups
	}
	t.Fatal("no condition in-reach")
	return nil
}

// TestReachKnowsEveryBuiltInGroup: built-in groups are listed by name, and one
// that is missing there would be taken for a custom resource's. The list is
// checked against this API server, and against all that client-go knows, which
// has the groups that are off by default.
func TestReachKnowsEveryBuiltInGroup(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	key := client.ObjectKey{Name: "fencedlease"}
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	w.Must(w.Admin.Get(w.Ctx, key, &validating))
	w.Must(w.Admin.Get(w.Ctx, key, &mutating))
	listed := map[string][]string{}
	for _, webhook := range validating.Webhooks {
		if webhook.Name == "guard.fencedlease.io" {
			listed["guard"] = groupsIn(t, webhook.MatchConditions)
		}
	}
	for _, webhook := range mutating.Webhooks {
		if webhook.Name == "stamp.fencedlease.io" {
			listed["stamp"] = groupsIn(t, webhook.MatchConditions)
		}
	}
	if len(listed) != 2 {
		t.Fatalf("got %v", listed)
	}

	for group, from := range builtInGroups(w) {
		for webhook, groups := range listed {
			if !slices.Contains(groups, group) {
				t.Errorf("%s does not list group %q of %s", webhook, group, from)
			}
		}
	}
	if !slices.Equal(listed["guard"], listed["stamp"]) {
		t.Errorf("guard and stamp differ: %v, %v", listed["guard"], listed["stamp"])
	}
	if slices.Contains(listed["guard"], ledgerKind.Group) || slices.Contains(listed["guard"], v1alpha1.GroupVersion.Group) {
		t.Errorf("a custom resource's group is listed: %v", listed["guard"])
	}
}

// builtInGroups are the API groups of this API server that no custom resource
// brought, and those of client-go, each with who has it.
func builtInGroups(w *suite.World) map[string]string {
	w.T.Helper()
	groups := map[string]string{}
	for _, gv := range clientgoscheme.Scheme.PrioritizedVersionsAllGroups() {
		if gv.Group != "" || gv.Version == "v1" {
			groups[gv.Group] = "client-go"
		}
	}
	client, err := discovery.NewDiscoveryClientForConfig(w.Admin.Config)
	w.Must(err)
	served, err := client.ServerGroups()
	w.Must(err)
	custom := customGroups(w)
	for _, group := range served.Groups {
		if !slices.Contains(custom, group.Name) {
			groups[group.Name] = "the API server"
		}
	}
	if len(groups) < 20 {
		w.T.Fatalf("only %v", groups)
	}
	return groups
}

func customGroups(w *suite.World) []string {
	w.T.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	w.Must(w.Admin.List(w.Ctx, list))
	var groups []string
	for _, crd := range list.Items {
		group, _, err := unstructured.NestedString(crd.Object, "spec", "group")
		w.Must(err)
		groups = append(groups, group)
	}
	return groups
}
