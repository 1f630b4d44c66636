package chart

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestRelease is the life of a release in a real API server, in a namespace that
// enforces the restricted Pod Security Standard. No node runs its Pods: the manager
// is a process in the place of one.
//
// The API server keeps a record of it, by which each right has a test of its own.
// Without a right the story may end early, at whatever the right is for; the test of
// the right fails even then.
func TestRelease(t *testing.T) {
	w := suite.In(t, plane)
	toTheEnd := false
	rights := sync.OnceFunc(func() {
		t.Run("rights", func(t *testing.T) { neededRights(t, toTheEnd, "fencedlease", "fencedlease-check") })
	})
	defer rights()
	w.Must(w.Admin.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
	}}}))
	dryRuns(w)

	// The installation. Without nodes, nobody would run the check.
	notes := mustHelm(w, "install", "--set=check.enabled=false")
	if !strings.Contains(notes, "helm test "+release+" --namespace "+namespace) || !strings.Contains(notes, "kubectl apply -f - <<'EOF'") {
		t.Errorf("it does not say what to do next:\n%s", notes)
	}
	m := startManager(w, "fencedlease-0")
	w.Eventually("all webhooks have an authority", func() error { return trusted(w, nil) })
	authority := bundle(w)
	worker := works(w, "payments")
	exercise(w, worker)

	// Another Pod in its place, against an API server that does not send lists as
	// watches, as some releases do not.
	m.stop(w)
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	m = startManager(w, "fencedlease-1")
	stillGuarded(w)

	// A second one is refused, under another name in another namespace.
	if _, err := helm(w.Ctx, t, "install", "second", chartDir(t), "--namespace="+w.Namespace); err == nil ||
		!strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("a second installation: %v", err)
	}

	// Upgrades, and back. The authority stays, and nothing conflicts.
	for _, step := range []struct {
		args     []string
		replicas int64
		timeout  int32
	}{
		{[]string{"upgrade"}, 2, 5},
		{[]string{"upgrade"}, 2, 5},
		{[]string{"upgrade", "--set=replicas=3,webhooks.timeoutSeconds=3"}, 3, 3},
		{[]string{"rollback"}, 2, 5},
		{[]string{"upgrade", "--set=commonLabels.team=storage"}, 2, 5},
	} {
		args := step.args
		if args[0] == "upgrade" {
			args = append(args, "--server-side=true", "--set=check.enabled=false")
		}
		mustHelm(w, args...)
		w.Must(trusted(w, authority))
		deployed := &unstructured.Unstructured{}
		deployed.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		w.Must(w.Admin.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "fencedlease"}, deployed))
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		w.Must(w.Admin.Get(w.Ctx, client.ObjectKey{Name: "fencedlease"}, configuration))
		if got := field(deployed, "spec|replicas"); got != step.replicas || *configuration.Webhooks[2].TimeoutSeconds != step.timeout {
			t.Errorf("after %q there are %v replicas, and the timeout is %d", step.args, got, *configuration.Webhooks[2].TimeoutSeconds)
		}
		stillGuarded(w)
	}

	// The check, as a hook that an upgrade waits for, and as the test.
	checkFails(w)
	checkHook(w)
	helmTest(w)
	toTheEnd = true
	rights()
	if !t.Failed() {
		t.Run("without a right", func(t *testing.T) { testsOfRightsFail(t, "fencedlease", "fencedlease-check") })
	}

	uninstall(w, m)
	withCertManager(w)
	takeOver(w)
}

// mustHelm runs a command on the release: its name, the chart where it takes one, the
// namespace.
func mustHelm(w *suite.World, args ...string) string {
	w.T.Helper()
	command := []string{args[0], release}
	if args[0] == "install" || args[0] == "upgrade" {
		command = append(command, chartDir(w.T))
	}
	command = append(append(command, "--namespace="+namespace), args[1:]...)
	out, err := helm(w.Ctx, w.T, command...)
	w.Must(err)
	return out
}

// bundles are the authorities of all webhooks, by name.
func bundles(w *suite.World) map[string][]byte {
	w.T.Helper()
	key := client.ObjectKey{Name: "fencedlease"}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	w.Must(errors.Join(w.Admin.Get(w.Ctx, key, mutating), w.Admin.Get(w.Ctx, key, validating)))
	found := map[string][]byte{}
	for i := range mutating.Webhooks {
		found[mutating.Webhooks[i].Name] = mutating.Webhooks[i].ClientConfig.CABundle
	}
	for i := range validating.Webhooks {
		found[validating.Webhooks[i].Name] = validating.Webhooks[i].ClientConfig.CABundle
	}
	return found
}

func bundle(w *suite.World) []byte {
	w.T.Helper()
	return bundles(w)["guard.fencedlease.io"]
}

// trusted is an error unless all webhooks have an authority: this one, if any.
func trusted(w *suite.World, authority []byte) error {
	w.T.Helper()
	found := bundles(w)
	if len(found) != 5 {
		return fmt.Errorf("there are %d webhooks", len(found))
	}
	for name, b := range found {
		if len(b) == 0 || authority != nil && string(b) != string(authority) {
			return fmt.Errorf("%s has the authority %q", name, b)
		}
	}
	return nil
}

// works shows that the installation does what it is there for: a FencedLease becomes
// Ready, its Lease is taken with a token, and of two writes to a guarded object that
// differ in their token only one is admitted.
func works(w *suite.World, name string) *suite.Actor {
	w.T.Helper()
	w.FencedLease(name)
	worker := w.Pod("worker")
	old := worker.Acquire(name, "worker")
	token := worker.Acquire(name, "worker-again")
	if token != old+1 {
		w.T.Errorf("token %s, then %s", old, token)
	}
	w.Guarded("state", name, token)
	suite.Refused(w.T, w.Admin.Modify("state", suite.Balance("1"), suite.Token(old.String())), 412, fence.ReasonStale)
	suite.Admitted(w.T, w.Admin.Modify("state", suite.Balance("1"), suite.Annotation(v1alpha1.AnnotationWrite, token.String()+"/first")))
	return worker
}

// stillGuarded: a write without a claim is refused.
func stillGuarded(w *suite.World) {
	w.T.Helper()
	suite.Refused(w.T, w.Admin.Modify("state", suite.Balance("9")), 428, fence.ReasonRequired)
}

// exercise has the manager do everything else that it does, so that all its requests
// are on record.
func exercise(w *suite.World, worker *suite.Actor) {
	w.T.Helper()
	// The same refusal of the same object twice is a series of one Event.
	stillGuarded(w)
	stillGuarded(w)
	// A delete asks whether the namespace is terminating.
	state := w.GetConfigMap("state")
	suite.Refused(w.T, w.Admin.Delete(w.Ctx, state), 428, fence.ReasonRequired)
	// Break-glass asks whether the user may.
	nobody := w.User("nobody")
	suite.Refused(w.T, nobody.Modify("state", suite.Balance("9"), suite.Annotation(v1alpha1.AnnotationBypass, "try")), 428, fence.ReasonRequired, "bypass")
	// The Lease of a FencedLease that is gone is retired.
	fl := w.FencedLease("short-lived")
	worker.Acquire("short-lived", "worker")
	w.Must(w.Admin.Delete(w.Ctx, fl))
	w.Eventually("the Lease is retired", func() error {
		if suite.Keys(w.Lease("short-lived")).Retired != v1alpha1.RetiredTrue {
			return errors.New("it is not")
		}
		return nil
	})
}

// uninstall takes the release away, and looks at what is left.
func uninstall(w *suite.World, m *manager) {
	w.T.Helper()
	rendered := releaseManifest(w.T)
	mustHelm(w, "uninstall")
	for key, object := range rendered {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GroupVersionKind())
		at := client.ObjectKeyFromObject(object)
		if key == crd {
			w.Must(w.Admin.Get(w.Ctx, at, live))
			continue
		}
		w.Eventually(key+" is gone", func() error {
			err := w.Admin.Get(w.Ctx, at, live)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is still there (%w)", err)
		})
	}
	// Nobody waits for a webhook that is not there, while the manager ends and after.
	suite.Admitted(w.T, w.Admin.Modify("state", suite.Balance("free")))
	m.stop(w)
	suite.Admitted(w.T, w.Admin.Modify("state", suite.Balance("as a bird")))
	// The Lease of its election goes with the service account: one that the manager
	// cannot give back any more would keep the next one waiting.
	w.Eventually("the manager's own Lease is gone", func() error {
		err := w.Admin.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "fencedlease"}, &coordinationv1.Lease{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%w)", err)
	})
	leftovers(w)
}

// withCertManager installs the same release again, which takes over the CRD and the
// FencedLeases in it. The certificate is made by somebody else now, and the manager
// has no right to.
func withCertManager(w *suite.World) {
	w.T.Helper()
	before := len(requests(w.T, "fencedlease"))
	mustHelm(w, "install", "--set=check.enabled=false,certificates.mode=certManager")
	if got := w.GetFencedLease("payments").Status.Token; got != 2 {
		w.T.Errorf("the token is %d", got)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("fencedlease-webhook."+namespace+".svc", nil, nil)
	w.Must(err)
	w.Must(w.Admin.Create(w.Ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fencedlease-webhook-cert"},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{"tls.crt": certificate, "tls.key": key},
	}))
	inject(w, certificate)
	startManager(w, "fencedlease-2")
	stillGuarded(w)
	mustHelm(w, "upgrade", "--reuse-values", "--set=logLevel=debug")
	w.Must(trusted(w, certificate))
	w.FencedLease("another")
	stillGuarded(w)
	noDenials(w.T, before)
	mustHelm(w, "uninstall")
}

// takeOver has the chart go on with what config/ has installed.
func takeOver(w *suite.World) {
	w.T.Helper()
	out, err := plane.Kubectl(w.Ctx, "apply", "--server-side", "--force-conflicts", "--kustomize="+path(w.T, "config", "default"))
	w.Must(err)
	if out.ExitCode != 0 {
		w.T.Fatal(out.Stderr)
	}
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: "fencedlease"}
	w.Must(w.Admin.Get(w.Ctx, key, before))
	_, err = helm(w.Ctx, w.T, "install", "fencedlease", chartDir(w.T), "--namespace="+cluster.Namespace,
		"--set=check.enabled=false", "--take-ownership", "--force-conflicts")
	w.Must(err)
	after := before.DeepCopy()
	w.Must(w.Admin.Get(w.Ctx, key, after))
	if before.GetUID() != after.GetUID() || after.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
		w.T.Errorf("the Deployment was not taken over: %v", after.GetLabels())
	}
	_, err = helm(w.Ctx, w.T, "uninstall", "fencedlease", "--namespace="+cluster.Namespace)
	w.Must(err)
}

// inject gives all webhooks an authority, as the CA injector of cert-manager does.
func inject(w *suite.World, authority []byte) {
	w.T.Helper()
	key := client.ObjectKey{Name: "fencedlease"}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	w.Must(errors.Join(w.Admin.Get(w.Ctx, key, mutating), w.Admin.Get(w.Ctx, key, validating)))
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = authority
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = authority
	}
	w.Must(errors.Join(w.Admin.Update(w.Ctx, mutating), w.Admin.Update(w.Ctx, validating)))
}

// expected are those objects that stay: made by Kubernetes and by this test, and the
// manager's own Events.
var expected = []string{
	"configmap/kube-root-ca.crt", "serviceaccount/default", "pod/fencedlease-0", "pod/fencedlease-1", "endpointslice.discovery.k8s.io/fencedlease-webhook",
	"event/", "event.events.k8s.io/",
}

// leftovers are an error: whatever else is in the namespace of the release, and
// whatever of the cluster has a label of the release, but the CRD.
func leftovers(w *suite.World) {
	w.T.Helper()
	list := func(namespaced bool, args ...string) []string {
		out, err := plane.Kubectl(w.Ctx, "api-resources", "--verbs=list", "--output=name", fmt.Sprintf("--namespaced=%t", namespaced))
		w.Must(err)
		kinds := strings.Join(strings.Fields(out.Stdout), ",")
		out, err = plane.Kubectl(w.Ctx, append([]string{"get", kinds, "--output=name", "--ignore-not-found"}, args...)...)
		w.Must(err)
		if out.ExitCode != 0 {
			w.T.Fatal(out.Stderr)
		}
		return strings.Fields(out.Stdout)
	}
	for _, name := range list(true, "--namespace="+namespace) {
		known := false
		for _, e := range expected {
			known = known || name == e || strings.HasSuffix(e, "/") && strings.HasPrefix(name, e)
		}
		if !known {
			w.T.Errorf("namespace %s still has %s", namespace, name)
		}
	}
	got := append(list(false, "--selector=app.kubernetes.io/instance="+release), list(true, "--all-namespaces", "--selector=app.kubernetes.io/instance="+release)...)
	if len(got) != 1 || !strings.HasSuffix(got[0], "/fencedleases.fencedlease.io") {
		w.T.Errorf("what is left of the release: %q", got)
	}
}
