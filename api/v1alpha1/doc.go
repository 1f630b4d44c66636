// Package v1alpha1 holds the API of group fencedlease.io: the FencedLease
// kind and the labels, annotations and user extras of the protocol
// (docs/protocol.md). It knows nothing of the packages that act on them.
//
// +kubebuilder:object:generate=true
// +groupName=fencedlease.io
package v1alpha1
