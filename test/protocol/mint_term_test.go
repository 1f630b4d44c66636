package protocol

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// wantKeys checks our keys on a Lease.
func wantKeys(t *testing.T, what string, got *coordinationv1.Lease, want fence.Keys) {
	t.Helper()
	if keys := suite.Keys(got); keys != want {
		t.Errorf("%s: our keys are\n%+v, want\n%+v", what, keys, want)
	}
}

// held are our keys on a Lease of a FencedLease that was minted to somebody.
func held(fencedLease, token, holder string, writer fence.Identity) fence.Keys {
	return fence.Keys{FencedBy: fencedLease, Token: token, TokenFor: holder, TokenHolder: string(writer)}
}

// A new term begins where any one of holder, acquireTime and leaseTransitions
// changes, and with nothing else.
func TestM1aTermsByEachField(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	if token := pod.Acquire("payments", "one"); token != 1 {
		t.Fatalf("the first token is %s, want 1", token)
	}

	token, holder := 1, "one"
	for _, tc := range []struct {
		name   string
		term   bool
		change func(*coordinationv1.Lease)
	}{
		{"the holder alone", true, func(l *coordinationv1.Lease) { holder = "two"; l.Spec.HolderIdentity = &holder }},
		{"acquireTime alone", true, func(l *coordinationv1.Lease) { l.Spec.AcquireTime = later(l.Spec.AcquireTime) }},
		{"acquireTime taken off", true, func(l *coordinationv1.Lease) { l.Spec.AcquireTime = nil }},
		{"leaseTransitions alone", true, func(l *coordinationv1.Lease) { *l.Spec.LeaseTransitions++ }},
		{"leaseTransitions lowered", true, func(l *coordinationv1.Lease) { *l.Spec.LeaseTransitions = 0 }},
		{"leaseTransitions taken off", true, func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = nil }},
		{"renewTime alone", false, func(l *coordinationv1.Lease) { l.Spec.RenewTime = later(l.Spec.RenewTime) }},
		{"leaseDurationSeconds alone", false, func(l *coordinationv1.Lease) { *l.Spec.LeaseDurationSeconds = 60 }},
		{"a label of somebody else", false, func(l *coordinationv1.Lease) { l.Labels["team"] = "billing" }},
		{"an annotation of somebody else", false, func(l *coordinationv1.Lease) { l.Annotations["note"] = "hello" }},
		{"nothing", false, func(*coordinationv1.Lease) {}},
	} {
		lease, err := pod.WriteLease("payments", tc.change)
		suite.Admitted(t, err)
		if tc.term {
			token++
		}
		wantKeys(t, tc.name, lease, held("payments", strconv.Itoa(token), holder, pod.Identity()))
	}
}

func later(old *metav1.MicroTime) *metav1.MicroTime {
	moved := metav1.NewMicroTime(old.Add(time.Second))
	return &moved
}

// Nobody gets a token where there is no holder.
func TestM1aNoTokenWithoutHolder(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")

	lease, err := pod.WriteLease("payments", func(l *coordinationv1.Lease) {
		suite.Take(l, "")
	})
	suite.Admitted(t, err)
	wantKeys(t, "a new acquireTime without a holder", lease, fence.Keys{FencedBy: "payments"})

	if token := pod.Acquire("payments", "one"); token != 1 {
		t.Errorf("token %s, want 1", token)
	}
}

// Of candidates that write on what they all read, one wins; the others get 409
// and the token advances by 1.
func TestM1aRaceAdvancesByOne(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "before")

	const candidates = 8
	read := w.Lease("payments")
	errs := make([]error, candidates)
	leases := make([]*coordinationv1.Lease, candidates)
	var group sync.WaitGroup
	for i := range candidates {
		leases[i] = read.DeepCopy()
		suite.Take(leases[i], "candidate-"+strconv.Itoa(i))
		group.Go(func() { errs[i] = pod.Update(w.Ctx, leases[i]) })
	}
	group.Wait()

	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Errorf("candidates %d and %d both won", winner, i)
		case !apierrors.IsConflict(err):
			t.Errorf("candidate %d: %v, want a conflict", i, err)
		}
	}
	if winner < 0 {
		t.Fatal(errors.Join(errs...))
	}
	wantKeys(t, "after the race", w.Lease("payments"), held("payments", "2", "candidate-"+strconv.Itoa(winner), pod.Identity()))
	if token := pod.Acquire("payments", "after"); token != 3 {
		t.Errorf("token %s after the race, want 3: those of the losers count for nothing", token)
	}
}

// A process in another Pod that goes on under the same holderIdentity has a term
// of its own, with its first renewal.
func TestM1cAnotherPodUnderTheSameName(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	before, after := w.Pod("before"), w.Pod("after")
	before.Acquire("payments", "payments-0")

	lease, err := before.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "the Pod itself renews", lease, held("payments", "1", "payments-0", before.Identity()))

	lease, err = after.WriteLease("payments", func(l *coordinationv1.Lease) { *l.Spec.LeaseDurationSeconds = 60 })
	suite.Admitted(t, err)
	wantKeys(t, "another Pod writes, and renews nothing", lease, held("payments", "1", "payments-0", before.Identity()))

	lease, err = after.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "another Pod renews", lease, held("payments", "2", "payments-0", after.Identity()))

	lease, err = after.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "it renews again", lease, held("payments", "2", "payments-0", after.Identity()))
	w.AwaitToken("payments", 2)
}

// A new certificate of the holder is recorded, and is no new term.
func TestM1cRotatedCertificate(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	user := w.User("scheduler")
	user.Acquire("payments", "scheduler")
	rotated := user.Rotated()
	if user.Identity() == rotated.Identity() {
		t.Fatal("a new certificate should be another identity")
	}

	lease, err := rotated.WriteLease("payments", func(l *coordinationv1.Lease) { *l.Spec.LeaseDurationSeconds = 60 })
	suite.Admitted(t, err)
	wantKeys(t, "the new certificate writes, and renews nothing", lease, held("payments", "1", "scheduler", user.Identity()))

	lease, err = rotated.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "the new certificate renews", lease, held("payments", "1", "scheduler", rotated.Identity()))

	// So is a user without a certificate; the message of both is the user name.
	plain := w.ServiceAccount("plain")
	lease, err = plain.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "a plain user renews", lease, held("payments", "1", "scheduler", plain.Identity()))

	// A Pod is a process of its own: a new term.
	pod := w.Pod("worker")
	lease, err = pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "a Pod renews", lease, held("payments", "2", "scheduler", pod.Identity()))
}

// A certificate or a plain user that renews for a Pod does not take its place.
func TestM1cNothingReplacesAPod(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")

	for name, other := range map[string]*suite.Actor{
		"a certificate": w.User("operator"), "a plain service account": w.ServiceAccount("plain"), "the administrator": w.Admin,
	} {
		lease, err := other.Renew("payments")
		suite.Admitted(t, err)
		wantKeys(t, name+" renews", lease, held("payments", "1", "worker", pod.Identity()))
	}

	// But it may acquire: that is a term like any other.
	user := w.User("successor")
	lease, err := user.TryAcquire("payments", "successor")
	suite.Admitted(t, err)
	wantKeys(t, "a certificate acquires", lease, held("payments", "2", "successor", user.Identity()))
}

// A release keeps everything: what was released is not superseded.
func TestM5ReleaseKeepsEverything(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "one")
	w.Guarded("account-99", "payments", 1)
	kept := held("payments", "1", "one", pod.Identity())

	pod.Release("payments")
	wantKeys(t, "released as client-go does", w.Lease("payments"), kept)

	// Some clients also clear the times, and count the transition.
	lease, err := pod.WriteLease("payments", func(l *coordinationv1.Lease) {
		transitions := *l.Spec.LeaseTransitions + 1
		l.Spec = coordinationv1.LeaseSpec{LeaseTransitions: &transitions}
	})
	suite.Admitted(t, err)
	wantKeys(t, "released, and all else cleared", lease, kept)

	// A write that was on its way still lands: nobody else began.
	suite.Admitted(t, pod.Modify("account-99", suite.Balance("1"), suite.Annotation("fencedlease.io/write", "1/last")))

	// The same holder that takes it again begins a new term.
	if token := pod.Acquire("payments", "one"); token != 2 {
		t.Errorf("token %s after a release, want 2", token)
	}
	suite.Refused(t, pod.Modify("account-99", suite.Balance("2"), suite.Annotation("fencedlease.io/write", "1/late")),
		412, fence.ReasonStale, "stop")
}
