package protocol

import (
	"testing"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestG7Inherited: a token that the write merely inherits is no claim, however
// the write is made. The object carries the current token: a comparison of the
// annotation alone would admit all of these.
func TestG7Inherited(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	s.Must(s.second.Modify("account", write("2/first")))

	for name, err := range map[string]error{
		"get, modify, put":                  s.first.Modify("account", suite.Balance("1")),
		"a merge patch":                     merge(s.World, s.first, "account", `{"data":{"balance":"1"}}`),
		"a merge patch that repeats it":     merge(s.World, s.first, "account", `{"metadata":{"annotations":{"fencedlease.io/token":"2"}},"data":{"balance":"1"}}`),
		"the nonce that is there":           s.first.Modify("account", suite.Balance("1"), write("2/first")),
		"no nonce":                          s.first.Modify("account", suite.Balance("1"), suite.WithoutAnnotation(v1alpha1.AnnotationWrite)),
		"a nonce of another token":          s.first.Modify("account", suite.Balance("1"), write("1/late")),
		"a nonce of a token that begins so": s.first.Modify("account", suite.Balance("1"), write("20/late")),
		"a nonce without a token":           s.first.Modify("account", suite.Balance("1"), write("late")),
		"labels only":                       merge(s.World, s.first, "account", `{"metadata":{"labels":{"team":"blue"}}}`),
		"a finalizer more":                  s.first.Modify("account", finalizers(ourFinalizer)),
		"by the administrator":              s.Admin.Modify("account", suite.Balance("1")),
	} {
		t.Run(name, func(t *testing.T) {
			got := suite.Refused(t, err, 428, fence.ReasonRequired, "a token that the write merely inherits is no claim", "change the annotation "+v1alpha1.AnnotationWrite)
			wantCauses(t, got, causes{fence.CauseMark: "2", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
		})
	}
	s.untouched("account", "2")

	// The twin: the same writes, with the token presented afresh, by anyone.
	suite.Admitted(t, s.Admin.Modify("account", suite.Balance("1"), write("2/second")))
	suite.Admitted(t, merge(s.World, s.Admin, "account", `{"metadata":{"annotations":{"fencedlease.io/write":"2/third"}},"data":{"balance":"2"}}`))
	suite.Admitted(t, s.presents("2").Modify("account", suite.Balance("3")))
}

// TestG7Apply: server-side apply inherits what it does not name.
func TestG7Apply(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	apply := func(a *suite.Actor, owner string, annotations map[string]string, balance string) error {
		cm := corev1ac.ConfigMap("account", s.Namespace).WithData(map[string]string{"balance": balance}).WithAnnotations(annotations)
		return a.Apply(s.Ctx, cm, client.FieldOwner(owner), client.ForceOwnership)
	}
	suite.Refused(t, apply(s.first, "blind", nil, "1"), 428, fence.ReasonRequired)
	// Equal content, but the first apply of a field manager changes who owns it.
	suite.Refused(t, apply(s.first, "blind", nil, "0"), 428, fence.ReasonRequired)
	suite.Refused(t, apply(s.first, "blind", map[string]string{v1alpha1.AnnotationToken: "2"}, "1"), 428, fence.ReasonRequired)
	suite.Refused(t, apply(s.first, "blind", map[string]string{v1alpha1.AnnotationToken: "1"}, "1"), 412, fence.ReasonStale)
	s.untouched("account", "2")

	nonce := func(n string) map[string]string {
		return map[string]string{v1alpha1.AnnotationToken: "2", v1alpha1.AnnotationWrite: n}
	}
	suite.Admitted(t, apply(s.Admin, "able", nonce("2/a"), "1"))
	// An apply that no longer names the token it owned takes it away: no claim.
	suite.Refused(t, apply(s.Admin, "able", nil, "2"), 428, fence.ReasonRequired)
	suite.Admitted(t, apply(s.Admin, "able", nonce("2/b"), "2"))
	suite.Admitted(t, apply(s.presents("2"), "headers", nil, "3"))
	wantMark(s.World, "account", "2")
}

// TestG7LeavesAStaleToken: an unclaimed write that would leave a token below
// current is answered as a late one, since that is what it most likely is. It
// names no presented token: a client steps down only if current exceeds its own.
func TestG7LeavesAStaleToken(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")

	got := suite.Refused(t, s.first.Modify("account", suite.Balance("1")), 412, fence.ReasonStale,
		"presents no token and would leave token 1, but the newest is 2", `held by "second"`, "if you are a former leader, stop")
	wantCauses(t, got, causes{fence.CauseMark: "1", fence.CauseCurrent: "2", fence.CauseHolder: "second"})

	// The token-holder is told what to present, and so a good leader goes on.
	got = suite.Refused(t, s.second.Modify("account", suite.Balance("1")), 428, fence.ReasonRequired,
		"you hold the current token: present 2", "annotation "+v1alpha1.AnnotationToken)
	wantCauses(t, got, causes{fence.CauseMark: "1", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
	s.untouched("account", "1")
	suite.Admitted(t, s.second.Modify("account", suite.Balance("1"), suite.Token("2")))
}

// TestG7Removed: the token cannot be taken away, by the holder neither.
func TestG7Removed(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	for name, err := range map[string]error{
		"by the holder":    s.second.Modify("account", withoutToken, suite.Balance("1")),
		"by another":       s.first.Modify("account", withoutToken, suite.Balance("1")),
		"beside a nonce":   s.second.Modify("account", withoutToken, write("2/x")),
		"by a null":        merge(s.World, s.first, "account", `{"metadata":{"annotations":{"fencedlease.io/token":null}}}`),
		"with all of them": merge(s.World, s.first, "account", `{"metadata":{"annotations":null}}`),
	} {
		t.Run(name, func(t *testing.T) {
			got := suite.Refused(t, err, 428, fence.ReasonRequired)
			wantCauses(t, got, causes{fence.CauseMark: "2", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
		})
	}
	s.untouched("account", "2")
	// A claim in the extra is stored, whatever the object says.
	suite.Admitted(t, s.presents("2").Modify("account", withoutToken, suite.Balance("1")))
	wantMark(s.World, "account", "2")
}

// TestG7Create: a guarded object is not made without a claim.
func TestG7Create(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	suite.Refused(t, s.first.Create(s.Ctx, s.ConfigMap("account", suite.GuardedBy("payments"))), 428, fence.ReasonRequired, "no claim")
	suite.Refused(t, s.second.Create(s.Ctx, s.ConfigMap("account", suite.GuardedBy("payments"))), 428, fence.ReasonRequired, "present 2")
	suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap("account", suite.GuardedBy("payments"), suite.Token("2"))))
	suite.Admitted(t, s.presents("2").Create(s.Ctx, s.ConfigMap("other", suite.GuardedBy("payments"))))
	wantMark(s.World, "other", "2")
}

// TestG7NothingChanges: a write that changes no byte is admitted, and so proves
// nothing: storage migrations write what is there.
func TestG7NothingChanges(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	before := s.GetConfigMap("account").ResourceVersion
	suite.Admitted(t, s.first.Modify("account"))
	suite.Admitted(t, merge(s.World, s.first, "account", `{"data":{"balance":"0"}}`))
	if after := s.GetConfigMap("account").ResourceVersion; after != before {
		t.Errorf("resourceVersion %s, was %s", after, before)
	}
	suite.Refused(t, s.first.Modify("account", suite.Balance("1")), 412, fence.ReasonStale)
}

// TestG7InDeletion: of an object in deletion, other controllers take their
// finalizers off without a claim. Nothing else.
func TestG7InDeletion(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account", "presented")
	for _, name := range []string{"account", "presented"} {
		s.Must(s.second.Modify(name, suite.Token("2"), finalizers(ourFinalizer, theirFinalizer)))
		suite.Refused(t, s.first.Modify(name, finalizers(ourFinalizer)), 428, fence.ReasonRequired)
		s.Must(remove(s.World, s.second, name))
	}

	for name, change := range map[string][]func(client.Object){
		"data":            {suite.Balance("1")},
		"data as well":    {finalizers(ourFinalizer), suite.Balance("1")},
		"a label as well": {finalizers(ourFinalizer), suite.Unguarded},
		"the order":       {finalizers(theirFinalizer, ourFinalizer)},
		"the token":       {finalizers(ourFinalizer), withoutToken},
		"the nonce":       {finalizers(ourFinalizer), write("late")},
	} {
		t.Run(name, func(t *testing.T) {
			suite.Refused(t, s.first.Modify("account", change...), 428, fence.ReasonRequired)
		})
	}
	suite.Refused(t, remove(s.World, s.first, "account"), 428, fence.ReasonRequired)
	s.untouched("account", "2")
	suite.Admitted(t, s.first.Modify("account", finalizers(ourFinalizer)))
	suite.Admitted(t, s.first.Modify("account", finalizers()))

	// A finalizer that is taken off with a claim is checked like any write: a
	// holder that cares presents its token.
	got := suite.Refused(t, s.presents("1").Modify("presented", finalizers(theirFinalizer)), 412, fence.ReasonStale, "token 1 is stale")
	wantCauses(t, got, causes{fence.CausePresented: "1", fence.CauseMark: "2", fence.CauseCurrent: "2", fence.CauseHolder: "second"})
	suite.Refused(t, s.first.Modify("presented", finalizers(theirFinalizer), suite.Token("1")), 412, fence.ReasonStale)
	s.untouched("presented", "2")
	suite.Admitted(t, s.presents("2").Modify("presented", finalizers(theirFinalizer)))
	suite.Admitted(t, s.second.Modify("presented", finalizers(), write("2/end")))
}
