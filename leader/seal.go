package leader

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/internal/refusal"
)

// Target names objects of the Lease's namespace that are guarded by its
// FencedLease, to be sealed: all of a resource, those of a selector, or by name.
type Target struct {
	// Resource is what to seal, for example
	// corev1.SchemeGroupVersion.WithResource("configmaps"). Required.
	Resource schema.GroupVersionResource

	// Names are those of the objects. An object that does not exist is passed over
	// (there is nothing to protect; create guarded objects up front), one that
	// another FencedLease guards, or none, is an error. Empty: every object that
	// the FencedLease guards and Selector selects.
	Names []string

	// Selector is a label selector, "app=payments" for example. Not with Names.
	// Empty selects everything.
	Selector string
}

func (t Target) validate() error {
	if t.Resource.Version == "" || t.Resource.Resource == "" {
		return fmt.Errorf("the Resource needs a version and a resource, and is %q", t.Resource)
	}
	if len(t.Names) > 0 && t.Selector != "" {
		return fmt.Errorf("%s: give Names or a Selector, not both", t.Resource.Resource)
	}
	if _, err := labels.Parse(t.Selector); err != nil {
		return fmt.Errorf("%s: Selector: %w", t.Resource.Resource, err)
	}
	return nil
}

// Seal writes the term's token to guarded objects, and nothing else. From then on
// no write of an earlier term can commit on them, not even one that is in flight
// already. It costs a read and a write each, one after the other; where objects are
// selected, one read of all of them; and no write where the object has the token. An
// error leaves the objects before it sealed.
//
// Objects of a FencedLease with tokenOrder StrictlyNewer take one write in a term,
// and the seal would be that write: do not seal them.
func (t *Term) Seal(ctx context.Context, targets ...Target) error {
	for _, target := range targets {
		if err := target.validate(); err != nil {
			return fmt.Errorf("leader: Seal: %w", err)
		}
	}
	ctx, cancel := t.Context(ctx)
	defer cancel()
	if err := t.Err(); err != nil {
		return err
	}
	err := t.seal(ctx, targets)
	if refused, ok := refusal.OfError(err); ok {
		t.refused(ctx, refused)
	}
	return t.endedBy(err)
}

// seal does the work of [Term.Seal]. The term need not have begun.
func (t *Term) seal(ctx context.Context, targets []Target) error {
	for _, target := range targets {
		seal := t.sealNamed
		if len(target.Names) == 0 {
			seal = t.sealSelected
		}
		if err := seal(ctx, target); err != nil {
			return fmt.Errorf("seal %s: %w", target.Resource.GroupResource(), err)
		}
	}
	return nil
}

// sealSelected seals the objects that a selector finds.
func (t *Term) sealSelected(ctx context.Context, target Target) error {
	selector := v1alpha1.LabelGuardedBy + "=" + t.fencedLease
	if target.Selector != "" {
		selector += "," + target.Selector
	}
	objects := t.objects(target.Resource)
	list := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return objects.List(ctx, opts)
	})
	return list.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(item runtime.Object) error {
		object, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("the list has an item of type %T", item)
		}
		return t.sealObject(ctx, objects, object)
	})
}

// sealNamed seals objects by name.
func (t *Term) sealNamed(ctx context.Context, target Target) error {
	objects := t.objects(target.Resource)
	for _, name := range target.Names {
		object, err := objects.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			t.election.options.Logger.Info("There is no such object to seal", "resource", target.Resource.GroupResource().String(), "name", name)
			continue
		}
		if err != nil {
			return err
		}
		if by := object.Labels[v1alpha1.LabelGuardedBy]; by != t.fencedLease {
			return fmt.Errorf("%s: it is not guarded by FencedLease %q: its label %s is %q",
				name, t.fencedLease, v1alpha1.LabelGuardedBy, by)
		}
		if err := t.sealObject(ctx, objects, object); err != nil {
			return err
		}
	}
	return nil
}

// sealObject writes the token to one object that does not have it. A token that
// differs from the stored one is a claim, whoever sends it.
func (t *Term) sealObject(ctx context.Context, objects metadata.ResourceInterface, object *metav1.PartialObjectMetadata) error {
	token := t.Token().String()
	if object.Annotations[v1alpha1.AnnotationToken] == token {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationToken, token)
	after, err := objects.Patch(ctx, object.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it was deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("%s: %w", object.Name, err)
	}
	if after.Annotations[v1alpha1.AnnotationToken] != token {
		return fmt.Errorf("%s: the token was not stored; does another webhook change annotations?", object.Name)
	}
	t.election.metrics.seals.Inc()
	return nil
}

// objects are those of a resource in the Lease's namespace.
func (t *Term) objects(resource schema.GroupVersionResource) metadata.ResourceInterface {
	return t.election.objects.Resource(resource).Namespace(t.election.options.Namespace)
}
