package protocol

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// setStatusToken puts status.token of FencedLease payments ahead, as a restore of
// the Lease alone would.
func setStatusToken(w *suite.World, token fence.Token) error {
	fl := w.GetFencedLease("payments")
	before := fl.DeepCopy()
	fl.Status.Token = int64(token)
	return w.Admin.Status().Patch(w.Ctx, fl, client.MergeFrom(before))
}

// A token exceeds the last one of the Lease, that of the status, and what
// minToken says: whichever is the largest.
func TestM2ExceedsAllThatItKnows(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments", func(s *v1alpha1.FencedLeaseSpec) { s.MinToken = 100 })
	pod := w.Pod("worker")
	if token := pod.Acquire("payments", "a"); token != 100 {
		t.Errorf("token %s, want minToken, 100", token)
	}
	if token := pod.Acquire("payments", "b"); token != 101 {
		t.Errorf("token %s, want the last and one, 101", token)
	}
	w.AwaitToken("payments", 101)

	pod.Release("payments")
	w.Must(setStatusToken(w, 500))
	// Seen at once: the webhook reads the FencedLease live.
	if token := pod.Acquire("payments", "c"); token != 501 {
		t.Errorf("token %s, want that of the status and one, 501", token)
	}
}

// The last token is 2^53-1; then no term begins any more, and the message says
// what to do.
func TestM2Exhausted(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	w.Must(setStatusToken(w, fence.MaxToken-1))

	if token := pod.Acquire("payments", "last"); token != fence.MaxToken {
		t.Fatalf("token %s, want %s", token, fence.MaxToken)
	}
	w.AwaitToken("payments", fence.MaxToken)

	_, err := pod.TryAcquire("payments", "next")
	refusal := suite.Refused(t, err, 422, fence.ReasonExhausted, "9007199254740991", "new FencedLease")
	if got := refusal.Causes[fence.CauseCurrent]; got != fence.MaxToken.String() {
		t.Errorf("cause %q, want %s", got, fence.MaxToken)
	}

	// The holder of the last one works on.
	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "the holder renews", lease, held("payments", fence.MaxToken.String(), "last", pod.Identity()))
	pod.Release("payments")
}

// A status at the limit is refused as well: the Lease may have been lost.
func TestM2ExhaustedByStatus(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	w.Must(setStatusToken(w, fence.MaxToken))
	_, err := w.Pod("worker").TryAcquire("payments", "next")
	suite.Refused(t, err, 422, fence.ReasonExhausted, "9007199254740991")
	wantKeys(t, "after the refusal", w.Lease("payments"), fence.Keys{FencedBy: "payments"})
}

// Lowering minToken has no effect.
func TestM2MinTokenLowered(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments", func(s *v1alpha1.FencedLeaseSpec) { s.MinToken = 1000 })
	pod := w.Pod("worker")
	pod.Acquire("payments", "a")
	changeSpec(w, "payments", func(s *v1alpha1.FencedLeaseSpec) { s.MinToken = 1 })
	wantKeys(t, "after minToken was lowered", w.Lease("payments"), held("payments", "1000", "a", pod.Identity()))
	if token := pod.Acquire("payments", "b"); token != 1001 {
		t.Errorf("token %s, want 1001", token)
	}
}

// changeSpec changes a FencedLease and waits until the controller has seen it.
func changeSpec(w *suite.World, name string, change func(*v1alpha1.FencedLeaseSpec)) {
	w.T.Helper()
	w.ChangeFencedLease(name, func(fl *v1alpha1.FencedLease) { change(&fl.Spec) })
	w.AwaitCondition(name, v1alpha1.ConditionReady, "True", v1alpha1.ReasonFenced)
}

// Raised under a holder, the token rises in the holder's own renewal: it knows
// before anyone checks, and nobody is locked out in between.
func TestM4MinTokenRaisedUnderAHolder(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	w.Guarded("account-99", "payments", 1)

	changeSpec(w, "payments", func(s *v1alpha1.FencedLeaseSpec) { s.MinToken = 1000 })
	w.AwaitCondition("payments", v1alpha1.ConditionHeld, "False", v1alpha1.ReasonTokenPending)
	wantKeys(t, "the operator asks for a mint", w.Lease("payments"), held("payments", "1", "", pod.Identity()))
	// The holder works on with the token that it has.
	suite.Admitted(t, pod.Modify("account-99", suite.Balance("1"), suite.Annotation(v1alpha1.AnnotationWrite, "1/a")))

	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "the holder renews", lease, held("payments", "1000", "worker", pod.Identity()))
	w.AwaitCondition("payments", v1alpha1.ConditionHeld, "True", v1alpha1.ReasonHeld)

	suite.Refused(t, pod.Modify("account-99", suite.Balance("2"), suite.Annotation(v1alpha1.AnnotationWrite, "1/b")),
		412, fence.ReasonStale)
	suite.Admitted(t, pod.Modify("account-99", suite.Balance("2"), suite.Token("1000")))

	// And once only.
	lease, err = pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "the holder renews again", lease, held("payments", "1000", "worker", pod.Identity()))
}

// The same where the status is ahead of a Lease that was restored.
func TestM4StatusAheadUnderAHolder(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	w.AwaitToken("payments", 1)

	w.Must(setStatusToken(w, 57))
	w.AwaitKeys("payments", "waits for a mint", func(k fence.Keys) bool { return k.TokenFor == "" })
	w.AwaitEvent("payments", "TokenRegressed", "57")
	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "the holder renews", lease, held("payments", "58", "worker", pod.Identity()))
	w.AwaitToken("payments", 58)
}

// What anybody wrote on a Lease before it was fenced counts for nothing.
func TestM2ForgedBeforehand(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	forger := w.Pod("forger")
	holder := "forger"
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	lease.Namespace, lease.Name = w.Namespace, "payments"
	lease.Annotations = map[string]string{
		v1alpha1.AnnotationToken:       fence.MaxToken.String(),
		v1alpha1.AnnotationTokenFor:    "forger",
		v1alpha1.AnnotationTokenHolder: "pod/forged",
	}
	lease.Labels = map[string]string{v1alpha1.LabelRetired: "true"}
	w.Must(forger.Create(w.Ctx, lease))

	w.FencedLease("payments")
	wantKeys(t, "once fenced", w.Lease("payments"), held("payments", "1", "forger", ""))
	if token := w.Pod("worker").Acquire("payments", "worker"); token != 2 {
		t.Errorf("token %s, want 2", token)
	}
}
