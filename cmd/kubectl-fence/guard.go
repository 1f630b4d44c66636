package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// guard puts objects under a FencedLease.
type guard struct {
	*factory

	token  tokenFlag
	output output
	lease  string
}

func newGuard(f *factory) *cobra.Command {
	g := &guard{factory: f}
	cmd := &cobra.Command{
		Use:   "guard (KIND/NAME… | KIND NAME…) --lease FENCEDLEASE [--token TOKEN]",
		Short: "Put objects under a FencedLease",
		Long: text(`
			Put objects under a FencedLease of their namespace: from then on the API server refuses
			writes to them that present no token, or a stale one.

			Label and token go on in one write. As soon as a term has begun, it needs the
			token of that term; it becomes the object's mark. Before the first term no token is
			needed: there is none to present.

			ConfigMaps, Secrets and custom resources can be guarded, and the kinds that the
			installation adds. On others the label would have no effect, so they are refused here:
			each object's kind is tried first, with a dry run that the guard must refuse.`),
		Example: examples(`
			# Before anybody holds the Lease
			kubectl fence guard configmap/state --lease payments

			# As its holder
			kubectl fence guard configmap/state widget/front --lease payments --token 7

			# Ask whether it would be admitted
			kubectl fence guard configmap/state --lease payments --token 7 --dry-run=server`),
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: f.completeObjects,
		RunE:              func(cmd *cobra.Command, args []string) error { return g.run(cmd, args) },
	}
	cmd.Flags().StringVar(&g.lease, "lease", "", "Name of the FencedLease. Required.")
	g.token.addTo(cmd.Flags())
	g.output.addTo(cmd)
	f.completeFlag(cmd, "lease")
	return cmd
}

func (g *guard) run(cmd *cobra.Command, args []string) error {
	if g.lease == "" {
		return errors.New("name the FencedLease in --lease; `kubectl fence status` lists them")
	}
	token, err := g.token.get()
	if err != nil {
		return err
	}
	if err := g.output.complete(cmd); err != nil {
		return err
	}
	objects, err := g.objects("", args...)
	checked := map[string]bool{}
	for i := range objects {
		if namespace := objects[i].Namespace; namespace != "" && !checked[namespace] {
			if err := g.exists(cmd.Context(), namespace); err != nil {
				return err
			}
			checked[namespace] = true
		}
		err = errors.Join(err, g.one(&objects[i], token))
	}
	return err
}

// exists checks that the FencedLease does, where one may read it; the guard
// itself checks it anyway.
func (g *guard) exists(ctx context.Context, namespace string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	if _, err = g.fencedLease(ctx, c, namespace, g.lease); apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// one puts an object under the FencedLease.
func (g *guard) one(o *object, token fence.Token) error {
	if o.Mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Errorf("%s belongs to no namespace, so no FencedLease can guard it", o.name())
	}
	switch by := o.guardedBy(); by {
	case "":
	case g.lease:
		return g.output.print(g.factory, o.Object, "is under FencedLease "+g.lease+" already")
	default:
		return fmt.Errorf("%[1]s is under FencedLease %[2]s: take it out first, with a token of %[2]s: `kubectl fence unguard %[1]s -n %[3]s --token …`",
			o.name(), by, o.Namespace)
	}
	if err := o.inReach(g.lease); err != nil {
		return err
	}
	// What an earlier guard left on the object is no claim.
	annotations := noAnnotations()
	if token != fence.None {
		value := token.String()
		annotations[v1alpha1.AnnotationToken] = &value
	}
	after, err := o.patch(keysPatch{
		Labels:      map[string]*string{v1alpha1.LabelGuardedBy: &g.lease},
		Annotations: annotations,
	}, g.output.dryRun())
	if err != nil {
		return err
	}
	return g.output.print(g.factory, after, "guarded")
}

// inReach checks that the guard sees writes to the object, with a dry run that it
// must refuse: where it is admitted, the label would have no effect.
func (o *object) inReach(lease string) error {
	malformed := "none"
	_, err := o.patch(keysPatch{
		Labels:      map[string]*string{v1alpha1.LabelGuardedBy: &lease},
		Annotations: map[string]*string{v1alpha1.AnnotationToken: &malformed},
	}, true)
	switch {
	case err == nil:
		return fmt.Errorf("%s is out of the guard's reach, so the label would have no effect: "+
			"ConfigMaps, Secrets and custom resources can be guarded, and the kinds that the installation adds, outside the operator's own namespace; "+
			"if this is one of them, ask `kubectl fence check`", o.name())
	case apierrors.ReasonForError(err) == metav1.StatusReason(fence.ReasonInvalid):
		return nil
	case apierrors.IsBadRequest(err): // somebody else's webhook takes no dry runs
		return nil
	default:
		return err
	}
}
