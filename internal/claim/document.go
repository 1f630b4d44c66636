package claim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"sigs.k8s.io/yaml"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// object is a JSON object. Its values stay the bytes that the caller wrote: big
// numbers, unknown fields and all.
type object map[string]json.RawMessage

// document is a body, taken apart as far as a claim needs it. It never changes.
type document struct {
	top, metadata, annotations object

	// removesAnnotations says that metadata or its annotations are null, which in a
	// merge patch removes them from the stored object.
	removesAnnotations bool
}

// errNoObject is what [parseDocument] returns for JSON that is no object.
var errNoObject = errors.New("it is not a JSON object")

// parseDocument reads a body in JSON or, since every other form was ruled out by
// its type, in YAML.
func parseDocument(body []byte) (*document, error) {
	if !json.Valid(body) {
		converted, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil, err
		}
		body = converted
	}
	var d document
	if err := json.Unmarshal(body, &d.top); err != nil || d.top == nil {
		return nil, errNoObject
	}
	var err error
	if d.metadata, err = d.top.child("metadata"); err != nil {
		return nil, err
	}
	if d.annotations, err = d.metadata.child("annotations"); err != nil {
		return nil, err
	}
	d.removesAnnotations = d.top.isNull("metadata") || d.metadata.isNull("annotations")
	return &d, nil
}

// child is the object under a key; empty where there is none, or null.
func (o object) child(key string) (object, error) {
	child := object{}
	if o[key] == nil || o.isNull(key) {
		return child, nil
	}
	if err := json.Unmarshal(o[key], &child); err != nil {
		return nil, fmt.Errorf("its %s is not a JSON object", key)
	}
	return child, nil
}

func (o object) isNull(key string) bool { return string(o[key]) == "null" }

// text is the string under a key; "" where there is none.
func (o object) text(key string) string {
	var s string
	if err := json.Unmarshal(o[key], &s); err != nil {
		return "" // absent, or for the API server to refuse
	}
	return s
}

// with is the object with a string under a key.
func (o object) with(key, value string) (object, error) {
	raw, err := encode(value)
	if err != nil {
		return nil, err
	}
	changed := maps.Clone(o)
	changed[key] = raw
	return changed, nil
}

// without is the object without these keys.
func (o object) without(keys ...string) object {
	rest := maps.Clone(o)
	for _, key := range keys {
		delete(rest, key)
	}
	return rest
}

// encode writes JSON as the API server does: no escapes that only HTML needs.
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// encode is the body with these metadata and annotations; an empty object is left
// out.
func (d *document) encode(metadata, annotations object) ([]byte, error) {
	metadata, err := metadata.holding("annotations", annotations)
	if err != nil {
		return nil, err
	}
	top, err := d.top.holding("metadata", metadata)
	if err != nil {
		return nil, err
	}
	return encode(top)
}

// holding is the object with a child under a key, or without it if it is empty.
func (o object) holding(key string, child object) (object, error) {
	if len(child) == 0 {
		return o.without(key), nil
	}
	raw, err := encode(child)
	if err != nil {
		return nil, err
	}
	changed := maps.Clone(o)
	changed[key] = raw
	return changed, nil
}

// stamped is the body with the token, and with a nonce unless that is "".
func (d *document) stamped(token fence.Token, nonce string) ([]byte, error) {
	annotations, err := d.annotations.with(v1alpha1.AnnotationToken, token.String())
	if err == nil && nonce != "" {
		annotations, err = annotations.with(v1alpha1.AnnotationWrite, nonce)
	}
	if err != nil {
		return nil, err
	}
	return d.encode(d.metadata, annotations)
}

// nonceDigits is how many hexadecimal digits of a hash make a nonce: enough that
// two writes in a row do not share it.
const nonceDigits = 16

// nonce is a value of the annotation fencedlease.io/write for this write.
//
// It is a hash of what the write says, not a random number: an identical write
// must remain a no-op for the API server, byte for byte. A controller that updates
// its object on each reconcile would otherwise wake itself with every watch event,
// without end. Left out of the hash is what the server, or this package, changes
// with each write. A new salt tells two writes of equal content apart.
func (d *document) nonce(method, media string, token fence.Token, salt string) (string, error) {
	content, err := d.encode(
		d.metadata.without("resourceVersion", "managedFields", "generation", "uid", "creationTimestamp"),
		d.annotations.without(v1alpha1.AnnotationToken, v1alpha1.AnnotationWrite),
	)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(method+"\n"+media+"\n"), content...))
	return token.String() + "/" + hex.EncodeToString(sum[:])[:nonceDigits] + salt, nil
}

// guarded says whether the object is labelled as guarded.
func (d *document) guarded() bool {
	labels, err := d.metadata.child("labels")
	return err == nil && labels.text(v1alpha1.LabelGuardedBy) != ""
}

// carries says whether the object has the token as its mark.
func (d *document) carries(token fence.Token) bool {
	return d.annotations.text(v1alpha1.AnnotationToken) == token.String()
}

// resourceVersion is the revision that the write expects; "" if any will do.
func (d *document) resourceVersion() string { return d.metadata.text("resourceVersion") }

// at is the body with another expected revision.
func (d *document) at(resourceVersion string) ([]byte, error) {
	metadata, err := d.metadata.with("resourceVersion", resourceVersion)
	if err != nil {
		return nil, err
	}
	return d.encode(metadata, d.annotations)
}
