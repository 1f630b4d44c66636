package protocol

import (
	"testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// accounts makes two guarded Ledgers, untouched with mark 1 and sealed with mark
// 2, in the second term.
func accounts(t *testing.T, change func(*v1alpha1.FencedLeaseSpec)) *scene {
	t.Helper()
	s := secondTerm(t, change)
	serveCustomResources(s.World)
	for _, name := range []string{"untouched", "sealed"} {
		s.Must(s.second.Create(s.Ctx, ledger(s.World, name)))
	}
	s.Must(modifyLedger(s.World, s.second, "sealed", suite.GuardedBy("payments"), suite.Token("2")))
	// A mark below current: the object joins the guard, and a third term begins.
	s.Must(modifyLedger(s.World, s.second, "untouched", suite.GuardedBy("payments"), suite.Token("2")))
	if three := s.first.Acquire("payments", "first"); three != 3 {
		t.Fatalf("token %s, want 3", three)
	}
	s.Must(modifyLedger(s.World, s.first, "sealed", suite.Token("3")))
	// Now first holds token 3, and second is the former leader.
	return s
}

// TestG7Status: a write to /status arrives with the stored annotations whatever
// the client sent, so only the user extra and the identity can claim.
func TestG7Status(t *testing.T) {
	t.Parallel()
	s := accounts(t, nil)

	got := suite.Refused(t, report(s.World, s.second, "sealed", paid("1")), 428, fence.ReasonRequired, "present yours in the user extra "+v1alpha1.ExtraToken)
	wantCauses(t, got, causes{fence.CauseMark: "3", fence.CauseCurrent: "3", fence.CauseHolder: "first"})
	suite.Refused(t, report(s.World, s.second, "sealed", paid("1"), suite.Token("3"), write("3/x")), 428, fence.ReasonRequired, "in the user extra")
	got = suite.Refused(t, report(s.World, s.second, "untouched", paid("1")), 412, fence.ReasonStale, "would leave token 2, but the newest is 3")
	wantCauses(t, got, causes{fence.CauseMark: "2", fence.CauseCurrent: "3", fence.CauseHolder: "first"})
	suite.Refused(t, report(s.World, s.first, "untouched", paid("1")), 428, fence.ReasonRequired, "you hold the current token: present 3 in the user extra")
	wantPaid(s.World, "sealed", "", "3")
	wantPaid(s.World, "untouched", "", "2")

	// The identity of the holder claims what the object carries already.
	suite.Admitted(t, report(s.World, s.first, "sealed", paid("1")))
	wantPaid(s.World, "sealed", "1", "3")
	// What the client sends for our keys is not stored by a status write.
	suite.Admitted(t, report(s.World, s.first, "sealed", paid("2"), suite.Token("1"), suite.Unguarded))
	wantPaid(s.World, "sealed", "2", "3")
	if getLedger(s.World, "sealed").GetLabels()[v1alpha1.LabelGuardedBy] != "payments" {
		t.Error("the label is gone")
	}
}

// TestG9Status: the user extra claims for /status, and the mark stays.
func TestG9Status(t *testing.T) {
	t.Parallel()
	s := accounts(t, nil)

	for _, name := range []string{"sealed", "untouched"} {
		got := suite.Refused(t, report(s.World, s.presents("2"), name, paid("1")), 412, fence.ReasonStale, "token 2 is stale: the newest is 3")
		if got.Causes[fence.CausePresented] != "2" || got.Causes[fence.CauseCurrent] != "3" {
			t.Errorf("causes %v", got.Causes)
		}
		suite.Refused(t, report(s.World, s.presents("4"), name, paid("1")), 403, fence.ReasonNeverIssued)
		suite.Refused(t, report(s.World, s.presents("03"), name, paid("1")), 422, fence.ReasonInvalid, "user extra")
	}
	suite.Admitted(t, report(s.World, s.presents("3"), "sealed", paid("1")))
	wantPaid(s.World, "sealed", "1", "3")
	suite.Admitted(t, report(s.World, s.presents("3"), "untouched", paid("1")))
	wantPaid(s.World, "untouched", "1", "2")
}

// TestG2Status: no status without the FencedLease.
func TestG2Status(t *testing.T) {
	t.Parallel()
	s := accounts(t, nil)
	suite.Admitted(t, report(s.World, s.first, "sealed", paid("1")))
	s.Must(s.Admin.Delete(s.Ctx, s.GetFencedLease("payments")))
	suite.Refused(t, report(s.World, s.first, "sealed", paid("2")), 422, fence.ReasonNotFound)
	suite.Refused(t, report(s.World, s.presents("3"), "sealed", paid("2")), 422, fence.ReasonNotFound)
	wantPaid(s.World, "sealed", "1", "3")
}

// TestG12MetadataLookAlike: a custom resource may have a field of its own that is
// called Metadata. It is not the object's metadata.
func TestG12MetadataLookAlike(t *testing.T) {
	t.Parallel()
	s := accounts(t, nil)
	for _, name := range []string{"Metadata", "METADATA", "metaData", "metadatA"} {
		t.Run(name, func(t *testing.T) {
			forged := map[string]any{
				"labels":            map[string]any{v1alpha1.LabelGuardedBy: "nobody"},
				"annotations":       map[string]any{v1alpha1.AnnotationToken: "3", v1alpha1.AnnotationWrite: "3/" + name, v1alpha1.AnnotationBypass: name},
				"deletionTimestamp": "2020-01-01T00:00:00Z",
				"finalizers":        []any{},
			}
			// No claim, no move, no break-glass.
			suite.Refused(t, modifyLedger(s.World, s.second, "sealed", field(forged, name)), 428, fence.ReasonRequired)
			suite.Refused(t, modifyLedger(s.World, s.second, "untouched", field(forged, name)), 412, fence.ReasonStale)
			suite.Refused(t, s.second.Create(s.Ctx, ledger(s.World, "new", suite.GuardedBy("payments"), field(forged, name))), 428, fence.ReasonRequired)
			// And no guard: without a label in its metadata it is anyone's.
			suite.Admitted(t, s.second.Create(s.Ctx, ledger(s.World, "free", field(forged, name))))
			suite.Admitted(t, modifyLedger(s.World, s.second, "free", field("1", "spec", "balance")))
			suite.Admitted(t, s.second.Delete(s.Ctx, ledger(s.World, "free")))
			// The holder writes such a field as any other.
			suite.Admitted(t, modifyLedger(s.World, s.first, "sealed", field(forged, name)))
			suite.Admitted(t, modifyLedger(s.World, s.first, "sealed", withoutField(name)))
		})
	}
	// The claim of the user extra is stored where it belongs.
	suite.Admitted(t, modifyLedger(s.World, s.presents("3"), "untouched", field(map[string]any{"annotations": map[string]any{}}, "Metadata")))
	wantPaid(s.World, "untouched", "", "3")
}
