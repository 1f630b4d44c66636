package outage

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

func TestMain(m *testing.M) { suite.Main(m, cluster.Options{}) }

// wantKeys checks our keys on a Lease.
func wantKeys(t *testing.T, what string, got *coordinationv1.Lease, want fence.Keys) {
	t.Helper()
	if keys := suite.Keys(got); keys != want {
		t.Errorf("%s: our keys are\n%+v, want\n%+v", what, keys, want)
	}
}

// held are our keys on a Lease of FencedLease payments that was minted to
// somebody.
func held(token, holder string, writer fence.Identity) fence.Keys {
	return fence.Keys{FencedBy: "payments", Token: token, TokenFor: holder, TokenHolder: string(writer)}
}

// install brings back what config/default says, in force.
func install(w *suite.World) {
	w.T.Helper()
	w.Must(suite.Cluster.Install(w.Ctx))
	w.Must(suite.Cluster.AwaitWebhooks(w.Ctx))
}

// withoutMutating takes the mutating webhooks away until the end of the test.
func withoutMutating(w *suite.World) {
	w.T.Helper()
	w.T.Cleanup(func() { install(w) })
	w.Must(w.Admin.Delete(w.Ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "fencedlease"}}))
	w.Eventually("mint is not called", func() error {
		_, err := dryRun(w)
		if err == nil { // the label was taken off
			return errors.New("it is still called")
		}
		suite.Refused(w.T, err, 422, fence.ReasonInvalid) // by the check, which remains
		return nil
	})
}

// withoutWebhooks takes all webhooks away until the end of the test.
func withoutWebhooks(w *suite.World) {
	w.T.Helper()
	w.T.Cleanup(func() { install(w) })
	uninstall(w)
	w.Eventually("no webhook is called", func() error {
		lease, err := dryRun(w)
		if err != nil {
			return err
		}
		return differ(suite.Keys(lease).FencedBy, "somebody")
	})
}

// uninstall takes both webhook configurations away.
func uninstall(w *suite.World) {
	w.T.Helper()
	w.Must(w.Admin.Delete(w.Ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "fencedlease"}}))
	w.Must(w.Admin.Delete(w.Ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "fencedlease"}}))
}

// dryRun writes a Lease with our label, which mint would take off.
func dryRun(w *suite.World) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, Name: "outage", Labels: map[string]string{v1alpha1.LabelFencedBy: "somebody"},
	}}
	return lease, w.Admin.Create(w.Ctx, lease, client.DryRunAll)
}

// differ is an error if two values differ.
func differ[T comparable](got, want T) error {
	if got != want {
		return fmt.Errorf("it is %v, want %v", got, want)
	}
	return nil
}

// runManager runs another manager in place of that of the package, until the end
// of the test; what else is to be restored comes before that one is back.
func runManager(w *suite.World, options cluster.ManagerOptions, restore ...func()) *cluster.Manager {
	w.T.Helper()
	w.Must(suite.Manager.Stop(w.Ctx))
	var manager *cluster.Manager
	w.T.Cleanup(func() {
		if manager != nil {
			w.Must(manager.Stop(w.Ctx))
			if log := manager.Log(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic") {
				w.T.Errorf("the manager's log:\n%s", log)
			}
		}
		for _, r := range restore {
			r()
		}
		w.Must(suite.Manager.Restart(w.Ctx))
	})
	var err error
	manager, err = suite.Cluster.StartManager(w.Ctx, options)
	w.Must(err)
	return manager
}
