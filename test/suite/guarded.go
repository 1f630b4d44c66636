package suite

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// ConfigMap is a ConfigMap of the test's namespace, not created yet.
func (w *World) ConfigMap(name string, change ...func(client.Object)) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Data:       map[string]string{"balance": "0"},
	}
	for _, c := range change {
		c(cm)
	}
	return cm
}

// Guarded creates a ConfigMap under a FencedLease, with the claim of a writer
// that holds that token; with no claim for [fence.None].
func (w *World) Guarded(name, fencedLease string, token fence.Token) *corev1.ConfigMap {
	w.T.Helper()
	cm := w.ConfigMap(name, GuardedBy(fencedLease), Token(token.String()))
	if token == fence.None {
		delete(cm.Annotations, v1alpha1.AnnotationToken)
	}
	w.Must(w.Admin.Create(w.Ctx, cm))
	return cm
}

// GetConfigMap reads a ConfigMap.
func (w *World) GetConfigMap(name string) *corev1.ConfigMap {
	w.T.Helper()
	cm := &corev1.ConfigMap{}
	w.Must(w.Admin.Get(w.Ctx, w.Key(name), cm))
	return cm
}

// GuardedBy puts an object under a FencedLease.
func GuardedBy(fencedLease string) func(client.Object) {
	return func(o client.Object) { setLabel(o, v1alpha1.LabelGuardedBy, fencedLease) }
}

// Unguarded takes the label off.
func Unguarded(o client.Object) {
	labels := o.GetLabels()
	delete(labels, v1alpha1.LabelGuardedBy)
	o.SetLabels(labels)
}

// Token sets the annotation token: a claim, if it differs from the stored one.
func Token(token string) func(client.Object) {
	return Annotation(v1alpha1.AnnotationToken, token)
}

// Annotation sets an annotation.
func Annotation(key, value string) func(client.Object) {
	return func(o client.Object) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		o.SetAnnotations(annotations)
	}
}

// WithoutAnnotation removes an annotation.
func WithoutAnnotation(key string) func(client.Object) {
	return func(o client.Object) {
		annotations := o.GetAnnotations()
		delete(annotations, key)
		o.SetAnnotations(annotations)
	}
}

// Balance sets the data of a ConfigMap: a change that is none of ours.
func Balance(balance string) func(client.Object) {
	return func(o client.Object) {
		if cm, ok := o.(*corev1.ConfigMap); ok {
			cm.Data = map[string]string{"balance": balance}
		}
	}
}

// Modify reads a ConfigMap, changes it, and puts it back: as most clients do.
func (a *Actor) Modify(name string, change ...func(client.Object)) error {
	cm := &corev1.ConfigMap{}
	if err := a.Get(a.world.Ctx, a.world.Key(name), cm); err != nil {
		return err
	}
	for _, c := range change {
		c(cm)
	}
	return a.Update(a.world.Ctx, cm)
}

func setLabel(o client.Object, key, value string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	o.SetLabels(labels)
}
