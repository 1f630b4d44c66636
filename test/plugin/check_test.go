package plugin

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestCheckForAUser: what one may not do is a warning where one can do without, and
// the role that it names gives the right.
func TestCheckForAUser(t *testing.T) {
	w, ann := secondTerm(t)
	ann.fence("check").prints("✓ CRD", "✓ webhook guard.fencedlease.io", "✓ mint answers", "✓ guard answers", "✓ FencedLeases 1 in namespace", "✓ you may acquire", "✓ you may impersonate yourself").lacks("✗", "!")

	user := w.User("ci")
	ci := at(w, user)
	ci.fence("check").prints("✓ mint answers", "✓ guard answers", "! webhook configurations", "not looked at", "✓ you may acquire", "! you may impersonate yourself",
		"you may not impersonate users "+ci.name, "kind: ClusterRole", "userextras/fencedlease.io/token").lacks("✗")
	var found struct {
		APIVersion, Kind string
		Sound            bool
		Checks           []struct{ Check, Level, Message, Remedy, Manifest string }
	}
	w.Must(json.Unmarshal([]byte(ci.fence("check", "-o", "json").prints().Stdout), &found))
	last := found.Checks[len(found.Checks)-1]
	if !found.Sound || found.Kind != "CheckResult" || found.APIVersion != "cli.fencedlease.io/v1" || last.Level != "warning" || last.Manifest == "" {
		t.Errorf("found %+v", found)
	}
	ci.fence("delete", "configmap", "state", "--token=2").fails("Error from server (Forbidden): ")
	role := strings.ReplaceAll(last.Manifest, "name: carry-fencing-token", "name: carry-"+w.Namespace)
	ann.kubectl(role, "apply", "-f", "-").prints()
	w.T.Cleanup(func() { ann.kubectl("", "delete", "clusterrole,clusterrolebinding", "carry-"+w.Namespace) })
	w.Eventually("the right is in force", func() error {
		if strings.Contains(ci.fence("check").Stdout, "! you may impersonate yourself") {
			return errNotYet
		}
		return nil
	})
	ci.fence("delete", "configmap", "state", "--token=1").refused(fence.ReasonStale)
	ci.fence("delete", "configmap", "state", "--token=2").prints("deleted")

	// A service account may be allowed to impersonate itself in its namespace.
	worker := at(w, w.Pod("worker"))
	worker.fence("check").prints("! you may impersonate yourself", "userextras/fencedlease.io/token", "- serviceaccounts").lacks("pod-uid")
	at(w, w.PodWithExtra("deputy", nil)).fence("check").prints("✓ you may impersonate yourself")

	// Nothing at all.
	nobody, err := suite.Cluster.UserConfig(w.Namespace + ":nobody")
	w.Must(err)
	nina := at(w, w.Actor("nobody", nobody))
	nina.fence("check").fails("error: the installation is not sound, or you may not use it").
		has(nina.fence("check").Stdout, "✗ you may acquire", "you may not get fencedleases", "kind: RoleBinding", "! mint answers", "not tried: ")
	nina.fence("check", "--installation-only").prints("! mint answers").lacks("you may")
	ann.fence("check", "-n", "fencedlease-system").fails("not sound").has(ann.fence("check", "-n", "fencedlease-system").Stdout, "✗ guard answers", "the operator's own is never fenced")
}

// hearing is told when a command says a word for the first time.
type hearing struct {
	word  string
	heard chan struct{}
	said  string
}

func (h *hearing) Write(text []byte) (int, error) {
	before := strings.Contains(h.said, h.word)
	h.said += string(text)
	if !before && strings.Contains(h.said, h.word) {
		close(h.heard)
	}
	return len(text), nil
}

// TestCheckFindsOut what is wrong with the installation, and waits until it is right.
// It changes the installation, so no other test may run.
func TestCheckFindsOut(t *testing.T) {
	w := suite.New(t)
	ann := at(w, w.Admin)
	validating := &admissionv1.ValidatingWebhookConfiguration{}
	w.Must(w.Admin.Get(w.Ctx, client.ObjectKey{Name: "fencedlease"}, validating))
	complete := validating.DeepCopy()
	change := func(change func(*admissionv1.ValidatingWebhookConfiguration)) {
		t.Helper()
		validating.Webhooks = complete.DeepCopy().Webhooks
		change(validating)
		w.Must(w.Admin.Update(w.Ctx, validating))
	}
	defer change(func(*admissionv1.ValidatingWebhookConfiguration) {})
	says := func(parts ...string) {
		t.Helper()
		r := ann.fence("check").fails("error: the installation is not sound")
		r.has(r.Stdout, parts...)
	}
	guard := len(complete.Webhooks) - 1

	change(func(c *admissionv1.ValidatingWebhookConfiguration) { c.Webhooks = c.Webhooks[:guard] })
	says("✗ webhook guard.fencedlease.io no webhook configuration has it", "Do: install FencedLease", "✓ webhook mint.fencedlease.io")
	w.Eventually("the API server does without the guard", func() error {
		if !strings.Contains(ann.fence("check").Stdout, "✗ guard answers") {
			return errNotYet
		}
		return nil
	})
	says("went past it")

	change(func(c *admissionv1.ValidatingWebhookConfiguration) {
		ignore := admissionv1.Ignore
		c.Webhooks[guard].FailurePolicy = &ignore
	})
	says("✗ webhook guard.fencedlease.io its failurePolicy is Ignore")
	change(func(c *admissionv1.ValidatingWebhookConfiguration) { c.Webhooks[guard].ClientConfig.CABundle = nil })
	says("✗ webhook guard.fencedlease.io its caBundle is empty")

	// The operator is away, and comes back.
	change(func(*admissionv1.ValidatingWebhookConfiguration) {})
	w.Must(suite.Manager.Stop(w.Ctx))
	says("✗ mint answers", "✗ guard answers", "connection refused", "the API server does not reach the operator")
	done := make(chan result, 1)
	waits := &hearing{word: "Waiting for mint answers: ", heard: make(chan struct{})}
	ann.listener = waits
	go func() { done <- ann.fence("check", "--wait=1m") }()
	select {
	case <-waits.heard:
	case r := <-done:
		t.Fatalf("it did not wait: %s%s", r.Stdout, r.Stderr)
	}
	w.Must(suite.Manager.Restart(w.Ctx))
	r := <-done
	r.warns("Waiting for mint answers: ").has(r.Stdout, "✓ mint answers", "✓ guard answers")
}
