package protocol

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// ownedBy makes a ConfigMap the owner of an object.
func ownedBy(owner *corev1.ConfigMap) func(client.Object) {
	return func(o client.Object) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}})
	}
}

// awaitGone waits until a ConfigMap is no more.
func awaitGone(w *suite.World, name string) {
	w.T.Helper()
	w.Eventually(name+" is gone", func() error {
		err := w.Admin.Get(w.Ctx, w.Key(name), &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.Must(err)
		return errors.New("it is still there")
	})
}

// awaitNoNamespace waits until the namespace of the test is no more.
func awaitNoNamespace(w *suite.World) {
	w.T.Helper()
	w.Eventually("the namespace is gone", func() error {
		err := w.Admin.Get(w.Ctx, client.ObjectKey{Name: w.Namespace}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.Must(err)
		return errors.New("it is still there")
	})
}

// TestExemptGarbageCollector: the real one deletes guarded dependents, orphans
// them, and ends a deletion in the foreground.
func TestExemptGarbageCollector(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	family := func(owner string) {
		t.Helper()
		s.Guarded(owner, "payments", 2)
		suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap(owner+"-child", suite.GuardedBy("payments"), suite.Token("2"), ownedBy(s.GetConfigMap(owner)))))
	}

	family("background")
	suite.Refused(t, remove(s.World, s.first, "background"), 428, fence.ReasonRequired)
	suite.Refused(t, remove(s.World, s.first, "background-child"), 428, fence.ReasonRequired)
	suite.Admitted(t, remove(s.World, s.second, "background", client.PropagationPolicy(metav1.DeletePropagationBackground)))
	awaitGone(s.World, "background-child")

	family("foreground")
	suite.Admitted(t, remove(s.World, s.second, "foreground", client.PropagationPolicy(metav1.DeletePropagationForeground)))
	awaitGone(s.World, "foreground-child")
	awaitGone(s.World, "foreground")

	family("orphan")
	suite.Admitted(t, remove(s.World, s.second, "orphan", client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	awaitGone(s.World, "orphan")
	if owners := s.GetConfigMap("orphan-child").OwnerReferences; len(owners) != 0 {
		t.Errorf("owners %v", owners)
	}
	s.untouched("orphan-child", "2")
}

// TestExemptNamesOnly: it takes the very service account. Another of the same
// namespace is not exempt, nor one of the same name elsewhere.
func TestExemptNamesOnly(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account", "other")
	for _, name := range []string{
		"system:serviceaccount:kube-system:default",
		"system:serviceaccount:" + s.Namespace + ":generic-garbage-collector",
		"system:serviceaccount:kube-system:generic-garbage-collector2",
		"system:apiserver",
		"system:serviceaccount:fencedlease-system:fencedlease",
	} {
		suite.Refused(t, remove(s.World, s.As(name), "account"), 428, fence.ReasonRequired)
	}
	s.untouched("account", "1")
	suite.Admitted(t, remove(s.World, s.As(garbageCollector), "account"))
	suite.Admitted(t, remove(s.World, s.As(namespaceController), "other"))
}

// TestExemptAllControllers: where a cluster runs all controllers as one user, it
// may do what the garbage collector does to owners and finalizers. No more.
func TestExemptAllControllers(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("owner")))
	owner := s.GetConfigMap("owner")
	controllers := s.As(controllerManager)
	nobody := func(o client.Object) { o.SetOwnerReferences(nil) }

	suite.Refused(t, s.first.Modify("account", ownedBy(owner)), 412, fence.ReasonStale)
	suite.Admitted(t, controllers.Modify("account", ownedBy(owner)))
	suite.Admitted(t, controllers.Modify("account", finalizers(ourFinalizer)))
	suite.Admitted(t, controllers.Modify("account", nobody, finalizers()))
	for name, change := range map[string][]func(client.Object){
		"data":            {suite.Balance("1")},
		"data as well":    {ownedBy(owner), suite.Balance("1")},
		"a label as well": {finalizers(ourFinalizer), suite.Unguarded},
		"the token":       {finalizers(ourFinalizer), withoutToken},
		"an annotation":   {suite.Annotation("team", "blue")},
	} {
		t.Run(name, func(t *testing.T) {
			err := controllers.Modify("account", change...)
			if name == "the token" {
				suite.Refused(t, err, 428, fence.ReasonRequired)
				return
			}
			suite.Refused(t, err, 412, fence.ReasonStale, "would leave token 1")
		})
	}
	suite.Refused(t, controllers.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"))), 428, fence.ReasonRequired)
	suite.Refused(t, remove(s.World, controllers, "account"), 428, fence.ReasonRequired)
	s.untouched("account", "1")
	suite.Admitted(t, s.As(controllerManager).Modify("account", suite.Balance("1"), suite.Token("2")))
}

// TestExemptNamespace: a namespace that goes away takes guarded objects along.
// Here the FencedLease itself stays until the end, held by a finalizer, so that
// it is the exemption that admits, and not that there is nothing to ask.
func TestExemptNamespace(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "plain")
	s.AwaitToken("payments", 2)
	serveCustomResources(s.World)
	s.Guarded("held", "payments", 2)
	s.Must(s.second.Modify("held", finalizers(theirFinalizer)))
	s.Must(s.second.Create(s.Ctx, ledger(s.World, "books", suite.GuardedBy("payments"), suite.Token("2"))))
	s.ChangeFencedLease("payments", func(fl *v1alpha1.FencedLease) { fl.Finalizers = []string{ourFinalizer} })
	suite.Refused(t, remove(s.World, s.Admin, "held"), 428, fence.ReasonRequired)

	s.Must(s.Admin.Delete(s.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}))
	awaitGone(s.World, "plain")
	s.Eventually("the held object is in deletion", func() error {
		if s.GetConfigMap("held").DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	})

	// Anybody may delete there now, but not write; the finalizer comes off.
	admin, warnings := s.Admin.Warned()
	suite.Admitted(t, remove(s.World, admin, "held"))
	warnings.Want(t)
	suite.Refused(t, s.Admin.Modify("held", suite.Balance("1")), 428, fence.ReasonRequired)
	suite.Admitted(t, s.Admin.Modify("held", finalizers()))
	awaitGone(s.World, "held")

	s.ChangeFencedLease("payments", func(fl *v1alpha1.FencedLease) { fl.Finalizers = nil })
	awaitNoNamespace(s.World)
}

// TestExemptNamespaceWithTheFencedLeaseGone: the ordinary end of a namespace.
func TestExemptNamespaceWithTheFencedLeaseGone(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "plain")
	s.Guarded("held", "payments", 2)
	s.Must(s.second.Modify("held", finalizers(theirFinalizer)))
	s.Must(s.Admin.Delete(s.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}))
	awaitGone(s.World, "plain")
	s.Eventually("the finalizer comes off, unclaimed", func() error { return s.Admin.Modify("held", finalizers()) })
	awaitNoNamespace(s.World)
}
