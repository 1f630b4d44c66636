package protocol

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// retiredKeys are our keys on a Lease whose FencedLease is gone.
func retiredKeys(token, tokenFor string, writer fence.Identity) fence.Keys {
	keys := held("payments", token, tokenFor, writer)
	keys.Retired = v1alpha1.RetiredTrue
	return keys
}

// retired is a world in which FencedLease payments ended, at token 2, while a
// worker held its Lease.
func retired(t *testing.T) (*suite.World, *suite.Actor) {
	t.Helper()
	w := suite.New(t)
	fl := w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "other")
	pod.Acquire("payments", "worker")
	w.Must(w.Admin.Delete(w.Ctx, fl))
	w.AwaitRetired("payments")
	return w, pod
}

// A FencedLease that was deleted and is made again goes on from where it was:
// its holder keeps token and term.
func TestM10RecreatedWhileHeld(t *testing.T) {
	t.Parallel()
	w, pod := retired(t)
	wantKeys(t, "retired", w.Lease("payments"), retiredKeys("2", "worker", pod.Identity()))
	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed", lease, retiredKeys("2", "worker", pod.Identity()))

	w.FencedLease("payments")
	wantKeys(t, "made again", w.Lease("payments"), held("payments", "2", "worker", pod.Identity()))
	w.AwaitToken("payments", 2)
	w.AwaitCondition("payments", v1alpha1.ConditionHeld, "True", v1alpha1.ReasonHeld)
	lease, err = pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed", lease, held("payments", "2", "worker", pod.Identity()))
	w.Guarded("account-99", "payments", 2)
	if token := pod.Acquire("payments", "next"); token != 3 {
		t.Errorf("token %s, want 3", token)
	}
}

// Nor does anything get lost where a client rebuilt the Lease in between, or
// somebody forged what is on it.
func TestM10KeysOfARetiredLeaseStay(t *testing.T) {
	t.Parallel()
	w, pod := retired(t)
	kept := retiredKeys("2", "worker", pod.Identity())
	lease := rebuilt(w.Lease("payments"))
	lease.Spec.RenewTime = later(lease.Spec.RenewTime)
	suite.Admitted(t, pod.Update(w.Ctx, lease))
	wantKeys(t, "rebuilt", lease, kept)

	for name, metadata := range forgeries() {
		wantKeys(t, name, patched(w, w.Admin, map[string]any{"metadata": withMark(metadata, name)}), kept)
	}
	pod.Release("payments")
	wantKeys(t, "released", w.Lease("payments"), kept)

	w.FencedLease("payments")
	wantKeys(t, "made again", w.Lease("payments"), held("payments", "2", "worker", pod.Identity()))
	if token := pod.Acquire("payments", "worker"); token != 3 {
		t.Errorf("token %s, want 3", token)
	}
}

// While it is gone its Lease changes hands unfenced, and that is remembered: who
// took it then is not taken for the holder before.
func TestM10AcquiredWhileGone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*coordinationv1.Lease){
		"another holder":            func(l *coordinationv1.Lease) { suite.Take(l, "next") },
		"the same holder, again":    func(l *coordinationv1.Lease) { suite.Take(l, "worker") },
		"a client that rebuilds it": func(l *coordinationv1.Lease) { *l = *rebuilt(l); suite.Take(l, "next") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, pod := retired(t)
			lease, err := pod.WriteLease("payments", change)
			suite.Admitted(t, err)
			wantKeys(t, "acquired", lease, retiredKeys("2", "", pod.Identity()))
			holder := *lease.Spec.HolderIdentity

			// The operator finds a holder without a token.
			w.FencedLease("payments")
			wantKeys(t, "made again", w.Lease("payments"), held("payments", "3", holder, ""))
			lease, err = pod.Renew("payments")
			suite.Admitted(t, err)
			wantKeys(t, "renewed", lease, held("payments", "3", holder, pod.Identity()))
			if token := pod.Acquire("payments", "last"); token != 4 {
				t.Errorf("token %s, want 4", token)
			}
		})
	}
}

// Another process that renewed under the old name meanwhile is found out by its
// next renewal.
func TestM10AnotherPodWhileGone(t *testing.T) {
	t.Parallel()
	w, pod := retired(t)
	other := w.Pod("other")
	lease, err := other.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed", lease, retiredKeys("2", "worker", pod.Identity()))
	w.FencedLease("payments")
	lease, err = other.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed again", lease, held("payments", "3", "worker", other.Identity()))
}

// Made again for another Lease, it leaves the old one retired.
func TestM10RecreatedWithAnotherLeaseName(t *testing.T) {
	t.Parallel()
	w, pod := retired(t)
	w.FencedLease("payments", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseName = "payments-2" })
	wantKeys(t, "the old Lease", w.Lease("payments"), retiredKeys("2", "worker", pod.Identity()))
	if token := pod.Acquire("payments-2", "worker"); token != 1 {
		t.Errorf("token %s of another Lease, want 1", token)
	}
	// A change of hands on the old one is none of its business.
	lease, err := pod.TryAcquire("payments", "next")
	suite.Admitted(t, err)
	wantKeys(t, "the old Lease changes hands", lease, retiredKeys("2", "", pod.Identity()))
	suite.Admitted(t, w.Admin.Delete(w.Ctx, w.Lease("payments")))
}

// The same without a moment in which it is gone: deleted and made again at once,
// for another Lease.
func TestM10ReplacedAtOnce(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	fl := w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	w.Must(w.Admin.Delete(w.Ctx, fl))
	w.FencedLease("payments", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseName = "payments-2" })
	w.AwaitRetired("payments")
	wantKeys(t, "the old Lease", w.Lease("payments"), retiredKeys("1", "worker", pod.Identity()))
}

// A FencedLease of another name goes on from a retired Lease.
func TestM10AdoptedUnderAnotherName(t *testing.T) {
	t.Parallel()
	w, pod := retired(t)
	w.FencedLease("billing", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseName = "payments" })
	wantKeys(t, "adopted", w.Lease("payments"), held("billing", "2", "worker", pod.Identity()))
	w.AwaitToken("billing", 2)
	if token := pod.Acquire("payments", "next"); token != 3 {
		t.Errorf("token %s, want 3", token)
	}
}
