// Package keys carries the labels and annotations of the protocol from
// Kubernetes objects to the values of package fence, which knows no objects.
package keys

import (
	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// OfLease are our keys among a Lease's labels and annotations.
func OfLease(labels, annotations map[string]string) fence.Keys {
	return fence.Keys{
		FencedBy:    labels[v1alpha1.LabelFencedBy],
		Retired:     labels[v1alpha1.LabelRetired],
		Token:       annotations[v1alpha1.AnnotationToken],
		TokenFor:    annotations[v1alpha1.AnnotationTokenFor],
		TokenHolder: annotations[v1alpha1.AnnotationTokenHolder],
	}
}

// OfGuarded are the protocol's keys among a guarded object's labels and
// annotations.
func OfGuarded(labels, annotations map[string]string) fence.Object {
	return fence.Object{
		GuardedBy: lookup(labels, v1alpha1.LabelGuardedBy),
		Token:     lookup(annotations, v1alpha1.AnnotationToken),
		Write:     lookup(annotations, v1alpha1.AnnotationWrite),
		Bypass:    lookup(annotations, v1alpha1.AnnotationBypass),
	}
}

func lookup(m map[string]string, key string) *string {
	if value, ok := m[key]; ok {
		return &value
	}
	return nil
}
