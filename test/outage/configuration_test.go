package outage

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// A mint that was missed is made up by the holder's next renewal.
func TestM1bMissedMint(t *testing.T) {
	w := suite.New(t)
	pod := w.Pod("worker")
	forged := map[string]string{
		"zero": "0", "leading-zeros": "007", "no-number": "x", "negative": "-5", "too-large": "9007199254740992", "far-too-large": "99999999999999999999",
	}
	w.FencedLease("payments")
	pod.Acquire("payments", "before")
	w.FencedLease("fresh")
	w.FencedLease("released")
	for name := range forged {
		w.FencedLease(name)
	}

	withoutWebhooks(w)
	for _, name := range []string{"payments", "fresh", "released"} {
		lease, err := pod.TryAcquire(name, "worker")
		suite.Admitted(t, err)
		if got := suite.Keys(lease).TokenFor; got == "worker" {
			t.Errorf("%s was minted", name)
		}
		w.AwaitCondition(name, v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonTokenPending)
	}
	pod.Release("released")
	for name, token := range forged {
		_, err := pod.WriteLease(name, func(l *coordinationv1.Lease) {
			suite.Take(l, "worker")
			l.Annotations = map[string]string{v1alpha1.AnnotationToken: token, v1alpha1.AnnotationTokenFor: "worker"}
		})
		suite.Admitted(t, err)
	}

	install(w)
	for name, token := range map[string]string{"payments": "2", "fresh": "1"} {
		for range 2 { // once, and not again
			lease, err := pod.Renew(name)
			suite.Admitted(t, err)
			want := held(token, "worker", pod.Identity())
			want.FencedBy = name
			wantKeys(t, name, lease, want)
		}
		w.AwaitCondition(name, v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonHeld)
	}
	// What is no token counts for nothing.
	for name := range forged {
		lease, err := pod.Renew(name)
		suite.Admitted(t, err)
		want := held("1", "worker", pod.Identity())
		want.FencedBy = name
		wantKeys(t, name, lease, want)
	}
	// Without a holder there is nobody to make it up for.
	lease, err := pod.Renew("released")
	suite.Admitted(t, err)
	wantKeys(t, "released", lease, fence.Keys{FencedBy: "released"})
}

// Where mint alone is away, its check stands in: no acquisition without a token.
func TestM8MintIsMissing(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")

	withoutMutating(w)
	_, err := pod.TryAcquire("payments", "next")
	suite.Refused(t, err, 422, fence.ReasonInvalid, "the new token that the mint webhook gave it is missing")
	_, err = pod.WriteLease("payments", func(l *coordinationv1.Lease) { l.Annotations[v1alpha1.AnnotationToken] = "77" })
	suite.Refused(t, err, 422, fence.ReasonInvalid, "were changed after the mint webhook set them")
	_, err = w.Pod("other").Renew("payments")
	suite.Refused(t, err, 422, fence.ReasonInvalid, "the new token that the mint webhook gave it is missing")

	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "the holder renews", lease, held("1", "worker", pod.Identity()))
	pod.Release("payments")
}

// A FencedLease is not Ready before the API server calls the webhook for its
// Lease, and gets Ready by itself once it does.
func TestFencedLeaseMintNotInForce(t *testing.T) {
	w := suite.New(t)
	pod := w.Pod("worker")
	existing := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "held"}}
	suite.Take(existing, "worker")
	w.Must(pod.Create(w.Ctx, existing))

	withoutWebhooks(w)
	for _, name := range []string{"payments", "held"} {
		w.Must(w.Admin.Create(w.Ctx, &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}))
	}
	for _, name := range []string{"payments", "held"} {
		w.AwaitCondition(name, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMintNotInForce)
		w.AwaitCondition(name, v1alpha1.ConditionHeld, metav1.ConditionUnknown, v1alpha1.ReasonNotFenced)
		c := meta.FindStatusCondition(w.GetFencedLease(name).Status.Conditions, v1alpha1.ConditionReady)
		if !strings.Contains(c.Message, "is the MutatingWebhookConfiguration fencedlease installed?") {
			t.Errorf("the message is %q", c.Message)
		}
	}
	wantKeys(t, "not fenced", w.Lease("held"), fence.Keys{})

	install(w)
	for _, name := range []string{"payments", "held"} {
		w.AwaitCondition(name, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
	}
	wantKeys(t, "fenced", w.Lease("held"), fence.Keys{FencedBy: "held", Token: "1", TokenFor: "worker"})
}
