package outage

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// withoutControllers lets the webhooks run on without the controllers: another
// holds the Lease by which replicas elect the one that runs them.
func withoutControllers(w *suite.World) {
	w.T.Helper()
	w.Must(suite.Manager.Stop(w.Ctx))
	w.T.Cleanup(func() { w.Must(suite.Manager.Restart(w.Ctx)) })
	election := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "fencedlease"}}
	w.Must(client.IgnoreNotFound(w.Admin.Delete(w.Ctx, election)))
	election.ResourceVersion = ""
	suite.Take(election, "another")
	*election.Spec.LeaseDurationSeconds = 3600
	w.Must(w.Admin.Create(w.Ctx, election))
	w.T.Cleanup(func() {
		w.Must(suite.Manager.Stop(w.Ctx))
		w.Must(w.Admin.Delete(w.Ctx, election))
	})
	w.Must(suite.Manager.Restart(w.Ctx))
}

func retire(w *suite.World, lease string) {
	w.T.Helper()
	w.Must(w.Operator().Patch(w.Ctx, w.Lease(lease), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+v1alpha1.LabelRetired+`":"true"}}}`))))
}

// A FencedLease that is gone, with a Lease that is not retired yet: nobody can
// tell what the next token is, and the client is told to try again.
func TestM2FencedLeaseGoneAndLeaseNotRetired(t *testing.T) {
	w := suite.New(t)
	fl := w.FencedLease("payments")
	pod := w.Pod("worker").Impatient()
	pod.Acquire("payments", "worker")
	kept := held("1", "worker", pod.Identity())
	withoutControllers(w)
	w.Must(w.Admin.Delete(w.Ctx, fl))

	_, err := pod.TryAcquire("payments", "next")
	suite.Refused(t, err, 503, fence.ReasonUnavailable, `FencedLease "payments" does not exist`, "has not retired the Lease yet", "try again")
	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed", lease, kept)

	// Made for another Lease, it is as good as gone for this one.
	w.Must(w.Admin.Create(w.Ctx, &v1alpha1.FencedLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "payments"},
		Spec:       v1alpha1.FencedLeaseSpec{LeaseName: "another"},
	}))
	_, err = pod.TryAcquire("payments", "next")
	suite.Refused(t, err, 503, fence.ReasonUnavailable, "does not wrap this Lease")

	retire(w, "payments")
	lease, err = pod.TryAcquire("payments", "next")
	suite.Admitted(t, err)
	kept.Retired, kept.TokenFor = v1alpha1.RetiredTrue, ""
	wantKeys(t, "acquired once retired", lease, kept)
}

// A retired Lease whose FencedLease exists again is acquired with a token, and
// is retired no longer: the webhook does not wait for the controllers.
func TestM10AcquiredBeforeTheControllersSeeIt(t *testing.T) {
	w := suite.New(t)
	fl := w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	withoutControllers(w)
	w.Must(w.Admin.Delete(w.Ctx, fl))
	retire(w, "payments")
	w.Must(w.Admin.Create(w.Ctx, &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "payments"}}))

	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	retired := held("1", "worker", pod.Identity())
	retired.Retired = v1alpha1.RetiredTrue
	wantKeys(t, "a renewal is not looked at", lease, retired)

	lease, err = pod.TryAcquire("payments", "next")
	suite.Admitted(t, err)
	wantKeys(t, "acquired", lease, held("2", "next", pod.Identity()))
}

// A Lease that was lost while the controllers were away, and made again by a
// client: its holder gets the token after that of the status.
func TestFencedLeaseLostAndMadeByAClient(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	for _, holder := range []string{"one", "two"} {
		pod.Acquire("payments", holder)
	}
	w.AwaitToken("payments", 2)

	t.Run("while the webhooks are away", func(t *testing.T) {
		w.T = t
		w.Must(suite.Manager.Stop(w.Ctx))
		withoutWebhooks(w)
		w.Must(w.Admin.Delete(w.Ctx, w.Lease("payments")))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "payments"}}
		suite.Take(lease, "three")
		w.Must(pod.Create(w.Ctx, lease))
		w.Must(suite.Cluster.Install(w.Ctx))
		w.Must(suite.Manager.Restart(w.Ctx))
	})
	w.T = t

	w.AwaitToken("payments", 3)
	wantKeys(t, "adopted", w.Lease("payments"), held("3", "three", ""))
	w.AwaitEvent("payments", "TokenRegressed", "a lesser token than 2")
	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed", lease, held("3", "three", pod.Identity()))
}
