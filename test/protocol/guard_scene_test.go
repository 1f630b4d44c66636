package protocol

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// scene is what most stories about the guard begin with: FencedLease payments in
// its second term. Token 1 was first's, and second holds token 2.
type scene struct {
	*suite.World

	first, second *suite.Actor // Pods
}

// secondTerm makes a scene, with guarded ConfigMaps of those names whose mark is
// 1: the second term has not touched them.
func secondTerm(t *testing.T, change func(*v1alpha1.FencedLeaseSpec), untouched ...string) *scene {
	t.Helper()
	s := &scene{World: suite.New(t)}
	if change == nil {
		change = func(*v1alpha1.FencedLeaseSpec) {}
	}
	s.FencedLease("payments", change)
	s.first, s.second = s.Pod("first"), s.Pod("second")
	if got := s.first.Acquire("payments", "first"); got != 1 {
		t.Fatalf("token %s, want 1", got)
	}
	for _, name := range untouched {
		s.Guarded(name, "payments", 1)
	}
	if got := s.second.Acquire("payments", "second"); got != 2 {
		t.Fatalf("token %s, want 2", got)
	}
	return s
}

// presents is the administrator with a claim in the user extra.
func (s *scene) presents(token string) *suite.Actor {
	s.T.Helper()
	return s.Admin.WithClaim(token)
}

// untouched checks that a ConfigMap has its first balance and still that mark.
func (s *scene) untouched(name, mark string) {
	s.T.Helper()
	cm := s.GetConfigMap(name)
	if cm.Data["balance"] != "0" || cm.Annotations[v1alpha1.AnnotationToken] != mark {
		s.T.Errorf("%s: balance %q, mark %q; want 0 and %q", name, cm.Data["balance"], cm.Annotations[v1alpha1.AnnotationToken], mark)
	}
}

// wantMark checks the mark of a ConfigMap.
func wantMark(w *suite.World, name, mark string) {
	w.T.Helper()
	if got := w.GetConfigMap(name).Annotations[v1alpha1.AnnotationToken]; got != mark {
		w.T.Errorf("%s: mark %q, want %q", name, got, mark)
	}
}

// causes are the facts that a refusal must tell, and no others of these types.
type causes map[fence.CauseType]string

func wantCauses(t *testing.T, got suite.Refusal, want causes) {
	t.Helper()
	for _, cause := range []fence.CauseType{fence.CausePresented, fence.CauseMark, fence.CauseCurrent, fence.CauseHolder} {
		if got.Causes[cause] != want[cause] {
			t.Errorf("cause %s is %q, want %q", cause, got.Causes[cause], want[cause])
		}
	}
}

// merge patches a ConfigMap with a JSON merge patch.
func merge(w *suite.World, a *suite.Actor, name, patch string) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	return a.Patch(w.Ctx, cm, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// remove deletes a ConfigMap.
func remove(w *suite.World, a *suite.Actor, name string, options ...client.DeleteOption) error {
	return a.Delete(w.Ctx, w.ConfigMap(name), options...)
}

// write sets the nonce with which a token is presented afresh.
func write(nonce string) func(client.Object) {
	return suite.Annotation(v1alpha1.AnnotationWrite, nonce)
}

// finalizers sets the finalizers of an object.
func finalizers(list ...string) func(client.Object) {
	return func(o client.Object) { o.SetFinalizers(list) }
}

// ourFinalizer and theirFinalizer keep an object in deletion.
const (
	ourFinalizer   = "payments.test.example/books"
	theirFinalizer = "backup.test.example/copy"
)

// withoutToken removes the annotation token.
var withoutToken = suite.WithoutAnnotation(v1alpha1.AnnotationToken)

// Users that the protocol knows by name.
const (
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	controllerManager   = "system:kube-controller-manager"
)
