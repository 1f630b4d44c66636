package protocol

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// forsaken is a scene whose FencedLease is gone, with the guarded objects left.
func forsaken(t *testing.T, names ...string) *scene {
	t.Helper()
	s := secondTerm(t, nil, names...)
	s.Must(s.Admin.Delete(s.Ctx, s.GetFencedLease("payments")))
	return s
}

// TestG2GuardThatNamesNothing: an object cannot be put under a FencedLease that
// does not exist, nor one that cannot exist.
func TestG2GuardThatNamesNothing(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("free")))
	for name, fencedLease := range map[string]string{
		"not there":       "nobody",
		"empty":           "",
		"not a DNS label": "No_Such.Name",
		"with dots":       "a.b-c_d.e",
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{
				s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy(fencedLease), suite.Token("2"))),
				s.second.Modify("free", suite.GuardedBy(fencedLease), suite.Token("2")),
				s.presents("2").Modify("free", suite.GuardedBy(fencedLease)),
			} {
				suite.Refused(t, err, 422, fence.ReasonNotFound, `FencedLease "`+fencedLease+`" does not exist in this namespace: create it`)
			}
		})
	}
	suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("2"))))
	suite.Admitted(t, s.second.Modify("free", suite.GuardedBy("payments"), suite.Token("2")))
}

// TestG2OtherNamespace: a FencedLease guards its own namespace only.
func TestG2OtherNamespace(t *testing.T) {
	t.Parallel()
	elsewhere := secondTerm(t, nil)
	w := suite.New(t)
	suite.Refused(t, w.Admin.Create(w.Ctx, w.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("2"))), 422, fence.ReasonNotFound)
	suite.Admitted(t, elsewhere.Admin.Create(elsewhere.Ctx, elsewhere.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("2"))))
}

// TestG2WaysOut: while the FencedLease is gone nothing is written, but the
// objects can be let go, each with a warning.
func TestG2WaysOut(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account", "unguarded", "deleted", "claimed")
	s.Guarded("ending", "payments", 2)
	s.Must(s.second.Modify("ending", finalizers(ourFinalizer, theirFinalizer)))
	s.Must(remove(s.World, s.second, "ending"))
	s.Must(s.Admin.Delete(s.Ctx, s.GetFencedLease("payments")))
	plain, warnings := s.User("jane").Warned()

	for name, change := range map[string][]func(client.Object){
		"data":                  {suite.Balance("1")},
		"data with a claim":     {suite.Balance("1"), suite.Token("2")},
		"label and data":        {suite.Unguarded, suite.Balance("1")},
		"label and annotation":  {suite.Unguarded, suite.Annotation("team", "blue")},
		"finalizers":            {finalizers(ourFinalizer)},
		"a reason without more": {suite.Annotation(v1alpha1.AnnotationBypass, "because")},
	} {
		t.Run(name, func(t *testing.T) {
			suite.Refused(t, plain.Modify("account", change...), 422, fence.ReasonNotFound, `"payments" does not exist`, "take the label")
		})
	}
	s.untouched("account", "1")
	suite.Refused(t, plain.Modify("ending", finalizers(ourFinalizer), suite.Balance("1")), 422, fence.ReasonNotFound)
	suite.Refused(t, plain.Modify("ending", finalizers(theirFinalizer, ourFinalizer)), 422, fence.ReasonNotFound)
	warnings.Want(t)

	out := "FencedLease \"payments\" does not exist: the write was not checked"
	suite.Admitted(t, plain.Modify("unguarded", suite.Unguarded))
	warnings.Want(t, out)
	suite.Admitted(t, plain.Modify("claimed", suite.Unguarded, withoutToken))
	warnings.Want(t, out)
	suite.Admitted(t, remove(s.World, plain, "deleted"))
	warnings.Want(t, out)
	suite.Admitted(t, plain.Modify("ending", finalizers(ourFinalizer)))
	warnings.Want(t, out)
	suite.Admitted(t, plain.Modify("ending", finalizers()))
	warnings.Want(t, out)
	// What was let go is free.
	suite.Admitted(t, plain.Modify("unguarded", suite.Balance("1")))
	warnings.Want(t)
}

// TestG2EmptyName: an object whose label is empty, from before the guard was in
// force, is let go like any other whose guard names nothing.
func TestG2EmptyName(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	// Nobody can make such an object but those who are exempt.
	exempt := s.As(namespaceController)
	s.Must(exempt.Create(s.Ctx, s.ConfigMap("unguarded", suite.GuardedBy(""))))
	s.Must(exempt.Create(s.Ctx, s.ConfigMap("deleted", suite.GuardedBy(""))))
	suite.Refused(t, s.second.Modify("unguarded", suite.Balance("1")), 422, fence.ReasonNotFound, `FencedLease "" does not exist`)
	suite.Admitted(t, s.second.Modify("unguarded", suite.Unguarded))
	suite.Admitted(t, remove(s.World, s.second, "deleted"))
}

// TestG2ComesBack: with the FencedLease made anew the counter goes on, and the
// marks hold.
func TestG2ComesBack(t *testing.T) {
	t.Parallel()
	s := forsaken(t, "account")
	suite.Refused(t, s.second.Modify("account", suite.Token("2")), 422, fence.ReasonNotFound)
	s.FencedLease("payments")
	three := s.first.Acquire("payments", "first")
	if three != 3 {
		t.Fatalf("token %s, want 3", three)
	}
	suite.Refused(t, s.second.Modify("account", suite.Token("2")), 412, fence.ReasonStale)
	suite.Admitted(t, s.first.Modify("account", suite.Token("3")))
}
