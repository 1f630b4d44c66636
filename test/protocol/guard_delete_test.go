package protocol

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestG7Delete: a delete has no object to put a token on. The identity of the
// token-holder claims for it, or the user extra.
func TestG7Delete(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "untouched", "by-identity", "by-extra")
	s.Guarded("touched", "payments", 2)
	s.Guarded("touched-too", "payments", 2)

	for _, name := range []string{"untouched", "touched"} {
		mark := s.GetConfigMap(name).Annotations[v1alpha1.AnnotationToken]
		got := suite.Refused(t, remove(s.World, s.first, name), 428, fence.ReasonRequired, "present yours in the user extra")
		wantCauses(t, got, causes{fence.CauseMark: mark, fence.CauseCurrent: "2", fence.CauseHolder: "second"})
		suite.Refused(t, remove(s.World, s.User("jane-"+name), name), 428, fence.ReasonRequired)
		suite.Refused(t, remove(s.World, s.Admin, name), 428, fence.ReasonRequired)
		suite.Refused(t, remove(s.World, s.presents("1"), name), 412, fence.ReasonStale, "token 1 is stale")
		suite.Refused(t, remove(s.World, s.presents("3"), name), 403, fence.ReasonNeverIssued)
		s.untouched(name, mark)
	}

	suite.Admitted(t, remove(s.World, s.second, "by-identity"))
	suite.Admitted(t, remove(s.World, s.second, "touched"))
	suite.Admitted(t, remove(s.World, s.presents("2"), "by-extra"))
	suite.Admitted(t, remove(s.World, s.presents("2"), "touched-too"))
}

// TestG7DeleteByIdentityAndExtra: the user extra comes first: a Pod that holds
// the token and claims another gets what it asked for.
func TestG7DeleteByIdentityAndExtra(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	stale := s.PodWithExtra("third", map[string][]string{v1alpha1.ExtraToken: {"2"}})
	if three := stale.Acquire("payments", "third"); three != 3 {
		t.Fatalf("token %s, want 3", three)
	}
	suite.Refused(t, remove(s.World, stale, "account"), 412, fence.ReasonStale, "token 2 is stale")
	suite.Admitted(t, remove(s.World, s.PodWithExtra("third", nil), "account"))
}

// TestG7DeleteCollection: a collection delete is one verdict for each object.
func TestG7DeleteCollection(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "a", "b")
	s.Guarded("c", "payments", 2)
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("free")))
	all := func(a *suite.Actor) error {
		return a.DeleteAllOf(s.Ctx, &corev1.ConfigMap{}, client.InNamespace(s.Namespace))
	}

	suite.Refused(t, all(s.first), 428, fence.ReasonRequired)
	suite.Refused(t, all(s.presents("1")), 412, fence.ReasonStale)
	for name, mark := range map[string]string{"a": "1", "b": "1", "c": "2"} {
		s.untouched(name, mark)
	}
	suite.Admitted(t, all(s.presents("2")))
	for _, name := range []string{"a", "b", "c", "free"} {
		if err := s.Admin.Get(s.Ctx, s.Key(name), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}

	s.Guarded("d", "payments", 2)
	s.Guarded("e", "payments", 2)
	suite.Admitted(t, all(s.second)) // by identity
}

// TestG7DeleteWithFinalizers: the delete that only begins a deletion is a delete.
func TestG7DeleteWithFinalizers(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	s.Must(s.second.Modify("account", finalizers(ourFinalizer)))
	suite.Refused(t, remove(s.World, s.first, "account"), 428, fence.ReasonRequired)
	if s.GetConfigMap("account").DeletionTimestamp != nil {
		t.Fatal("it is in deletion")
	}
	suite.Admitted(t, remove(s.World, s.second, "account"))
	if s.GetConfigMap("account").DeletionTimestamp == nil {
		t.Fatal("it is not in deletion")
	}
}
