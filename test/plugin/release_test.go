package plugin

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestRelease: the Lease is free, its token stays, and the next holder gets a larger
// one.
func TestRelease(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	ann.fence("release", "payments").fails("error: nobody is there to be asked: confirm with --yes")
	ann.fence("release", "nothing", "--yes").fails(`FencedLease "nothing" does not exist`)
	if holder := *w.Lease("payments").Spec.HolderIdentity; holder != "second" {
		t.Fatalf("the holder is %q, want second", holder)
	}
	duration := *w.Lease("payments").Spec.LeaseDurationSeconds

	ann.fence("release", "payments", "--yes").prints(`Lease payments released: "second" held it. Token 2 stays the current one until the next term begins.`)
	lease := w.Lease("payments")
	if suite.Keys(lease).CurrentToken() != 2 || *lease.Spec.HolderIdentity != "" || *lease.Spec.LeaseDurationSeconds != duration {
		t.Errorf("the Lease is %+v with keys %+v", lease.Spec, suite.Keys(lease))
	}
	ann.fence("release", "payments", "--yes").prints("Lease payments is free already.")
	ann.fence("status", "payments").prints("payments, free: nobody holds it", "Holder: <none>", "Token: 2")

	// The old token is good until the next term begins, and not a moment longer.
	patch := func() result {
		t.Helper()
		return ann.fence("patch", "configmap", "state", "--token=2", "-p", "data: {balance: '1'}")
	}
	patch().prints("patched")
	if token := w.Pod("third").Acquire("payments", "third"); token != 3 {
		t.Errorf("the next token is %s, want 3", token)
	}
	ann.fence("patch", "configmap", "state", "--token=2", "-p", "data: {balance: '2'}").refused(fence.ReasonStale)
	want(w, "state", "payments", "2", "1")

	// Who may not write Leases releases none.
	viewer := w.ServiceAccount("viewer")
	w.Must(w.Admin.DeleteAllOf(w.Ctx, roleBinding(), inNamespace(w)))
	bindRole(w, viewer, []string{"get"}, []string{"fencedleases"})
	at(w, viewer).fence("release", "payments", "--yes").fails("Error from server (Forbidden): ", "leases.coordination.k8s.io \"payments\" is forbidden")
}
