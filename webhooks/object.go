package webhooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/keys"
)

// metadata is what is decoded of an object's metadata.
type metadata struct {
	Name              string            `json:"name"`
	UID               types.UID         `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	DeletionTimestamp *string           `json:"deletionTimestamp"`
}

var errNoObject = errors.New("the review has no object")

// decode reads the wanted fields of an object into v and skips the rest: a
// guarded ConfigMap can be 1 MiB, twice in a review. Names are matched exactly:
// encoding/json would take a custom resource's field "Metadata" for "metadata".
func decode(raw []byte, v any) error {
	if len(raw) == 0 {
		return errNoObject
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, v); err != nil {
		return fmt.Errorf("the object in the review cannot be decoded: %w", err)
	}
	return nil
}

func decodeMetadata(raw []byte) (metadata, error) {
	var object struct {
		Metadata metadata `json:"metadata"`
	}
	err := decode(raw, &object)
	return object.Metadata, err
}

// storedOf is the metadata of the stored object of a review, or that of the new
// one of a create. The review itself may lack the name: a request to delete a
// collection names none.
func storedOf(req admission.Request) metadata {
	for _, raw := range [][]byte{req.OldObject.Raw, req.Object.Raw} {
		if meta, err := decodeMetadata(raw); err == nil {
			return meta
		}
	}
	return metadata{Name: req.Name}
}

// guarded is what the protocol reads of a guarded object.
func (m metadata) guarded() *fence.Object {
	object := keys.OfGuarded(m.Labels, m.Annotations)
	object.InDeletion = m.DeletionTimestamp != nil
	return &object
}

// lease is what the protocol reads of a Lease. Its spec is kept as JSON: it is
// compared, and a field of a newer API version must not get lost.
type lease struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		HolderIdentity   string          `json:"holderIdentity"`
		AcquireTime      json.RawMessage `json:"acquireTime"`
		RenewTime        json.RawMessage `json:"renewTime"`
		LeaseTransitions json.RawMessage `json:"leaseTransitions"`
	} `json:"spec"`
}

func (l lease) fenced() fence.Lease {
	return fence.Lease{
		Keys:        keys.OfLease(l.Metadata.Labels, l.Metadata.Annotations),
		Holder:      l.Spec.HolderIdentity,
		AcquireTime: string(l.Spec.AcquireTime),
		RenewTime:   string(l.Spec.RenewTime),
		Transitions: string(l.Spec.LeaseTransitions),
	}
}

// changeOf says what differs between a stored object and the new one, as far as
// the protocol needs it beyond whether anything does.
func changeOf(old, updated []byte) (fence.Change, error) {
	var a, b fields
	if err := errors.Join(a.decode(old), b.decode(updated)); err != nil {
		return fence.Change{}, err
	}
	if !sameExcept(a.top, b.top, "metadata") {
		return fence.Change{}, nil
	}
	ourKeys := a.withoutOurKeys.equal(b.withoutOurKeys) && sameExcept(a.meta, b.meta, "managedFields", "labels", "annotations")
	return fence.Change{
		OnlyOurKeys:    ourKeys,
		OnlyFinalizers: sameExcept(a.meta, b.meta, "managedFields", "finalizers") && fewer(a.finalizers, b.finalizers),
		OnlyOwnership:  sameExcept(a.meta, b.meta, "managedFields", "finalizers", "ownerReferences"),
	}, nil
}

// fields are an object's fields and those of its metadata, not decoded further.
type fields struct {
	top, meta      map[string]json.RawMessage
	finalizers     []string
	withoutOurKeys keyMaps
}

// keyMaps are labels and annotations.
type keyMaps struct{ labels, annotations map[string]string }

func (s keyMaps) equal(other keyMaps) bool {
	return maps.Equal(s.labels, other.labels) && maps.Equal(s.annotations, other.annotations)
}

func (f *fields) decode(raw []byte) error {
	if err := decode(raw, &f.top); err != nil {
		return err
	}
	if err := decode(f.top["metadata"], &f.meta); err != nil {
		return err
	}
	var m struct {
		metadata

		Finalizers []string `json:"finalizers"`
	}
	if err := decode(f.top["metadata"], &m); err != nil {
		return err
	}
	delete(m.Labels, v1alpha1.LabelGuardedBy)
	for _, key := range []string{v1alpha1.AnnotationToken, v1alpha1.AnnotationWrite, v1alpha1.AnnotationBypass} {
		delete(m.Annotations, key)
	}
	f.finalizers = m.Finalizers
	f.withoutOurKeys = keyMaps{m.Labels, m.Annotations}
	return nil
}

// sameExcept says that two sets of fields are equal but for the named ones. The
// API server writes both objects of a review with one encoder.
func sameExcept(a, b map[string]json.RawMessage, names ...string) bool {
	for name := range union(a, b) {
		if !slices.Contains(names, name) && !bytes.Equal(a[name], b[name]) {
			return false
		}
	}
	return true
}

func union(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// fewer says that updated has some of old's elements, and none of its own.
func fewer(old, updated []string) bool {
	return len(updated) < len(old) &&
		!slices.ContainsFunc(updated, func(s string) bool { return !slices.Contains(old, s) })
}
