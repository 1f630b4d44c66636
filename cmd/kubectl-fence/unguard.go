package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// unguard takes objects out from under their FencedLeases.
type unguard struct {
	*factory

	token  tokenFlag
	output output
}

func newUnguard(f *factory) *cobra.Command {
	u := &unguard{factory: f}
	cmd := &cobra.Command{
		Use:   "unguard (KIND/NAME… | KIND NAME…) [--token TOKEN]",
		Short: "Take objects out from under their FencedLease",
		Long: text(`
			Take objects out from under their FencedLease: from then on anybody who may write them
			can, whatever the token.

			It is a write under that FencedLease, the last one, and needs the current token. If the
			FencedLease does not exist any more, it needs none. The mark stays on
			the object and means nothing there.

			To put an object under another FencedLease, unguard it with a token of the first, then
			guard it with a token of the second.`),
		Example: examples(`
			# As the holder
			kubectl fence unguard configmap/state --token 7

			# After the FencedLease was deleted
			kubectl fence unguard configmap/state`),
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: f.completeObjects,
		RunE:              func(cmd *cobra.Command, args []string) error { return u.run(cmd, args) },
	}
	u.token.addTo(cmd.Flags())
	u.output.addTo(cmd)
	return cmd
}

func (u *unguard) run(cmd *cobra.Command, args []string) error {
	token, err := u.token.get()
	if err != nil {
		return err
	}
	if err := u.output.complete(cmd); err != nil {
		return err
	}
	c, err := u.client()
	if err != nil {
		return err
	}
	objects, err := u.objects("", args...)
	for i := range objects {
		err = errors.Join(err, u.one(cmd.Context(), c, &objects[i], token))
	}
	return err
}

// one takes an object out. The write names the revision that was read, so that
// the token is never presented to another FencedLease than the one that it is of.
func (u *unguard) one(ctx context.Context, c client.Client, o *object, token fence.Token) error {
	by := o.guardedBy()
	if by == "" {
		return u.output.print(u.factory, o.Object, "is not guarded")
	}
	var annotations map[string]*string
	switch {
	case gone(ctx, c, types.NamespacedName{Namespace: o.Namespace, Name: by}):
		annotations = noAnnotations() // with no counter to compare it with, the mark says nothing
	case token != fence.None:
		annotations = present(token)
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if now := o.guardedBy(); now != by {
			return fmt.Errorf("%s was under FencedLease %s, and now it is under %q: look again", o.name(), by, now)
		}
		after, err := o.patch(keysPatch{
			ResourceVersion: o.ResourceVersion,
			Labels:          map[string]*string{v1alpha1.LabelGuardedBy: nil},
			Annotations:     annotations,
		}, u.output.dryRun())
		if apierrors.IsConflict(err) {
			return errors.Join(err, o.again())
		}
		if err != nil {
			return err
		}
		return u.output.print(u.factory, after, "unguarded")
	})
	return err
}

// gone says that a FencedLease does not exist. One that cannot be read is left to
// the guard to judge.
func gone(ctx context.Context, c client.Client, name types.NamespacedName) bool {
	return apierrors.IsNotFound(c.Get(ctx, name, &v1alpha1.FencedLease{}))
}
