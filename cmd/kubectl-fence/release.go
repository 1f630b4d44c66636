package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/internal/keys"
)

// releaseTries is how often a release is tried again because the holder renewed
// meanwhile.
const releaseTries = 5

// release makes a Lease free that somebody holds.
type release struct {
	*factory

	yes bool
}

func newRelease(f *factory) *cobra.Command {
	r := &release{factory: f}
	cmd := &cobra.Command{
		Use:   "release FENCEDLEASE [--yes]",
		Short: "Make the Lease free that a holder left behind",
		Long: text(`
			Make the Lease of a FencedLease free, so that the next candidate need not wait until it
			expires: for a holder that is gone for good and did not release it.

			It shuts nobody out. The released holder's token stays the current one until the next
			term begins: until then its writes are admitted, and if it still runs it may take the
			Lease again. The next holder gets a larger token, and from then on the old one is
			refused.`),
		Example: examples(`
			# Asks first
			kubectl fence release payments

			# In a script
			kubectl fence release payments --yes`),
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: f.completeLeases,
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVarP(&r.yes, "yes", "y", false, "Do not ask.")
	return cmd
}

func (r *release) run(ctx context.Context, name string) error {
	c, err := r.client()
	if err != nil {
		return err
	}
	namespace, err := r.namespace()
	if err != nil {
		return err
	}
	fl, err := r.fencedLease(ctx, c, namespace, name)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: namespace, Name: fl.LeaseName()}
	lease := &coordinationv1.Lease{}
	if err := c.Get(ctx, key, lease); err != nil {
		return err
	}
	holder := holderOf(lease)
	if holder == "" {
		_, err := fmt.Fprintf(r.Out, "Lease %s is free already.\n", key.Name)
		return err
	}
	if err := r.ask(key.Name, holder); err != nil {
		return err
	}
	if err := r.free(ctx, c, lease, holder); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.Out, "Lease %s released: %q held it. Token %s stays the current one until the next term begins.\n",
		key.Name, holder, keys.OfLease(lease.Labels, lease.Annotations).CurrentToken())
	return err
}

// ask has somebody at a terminal confirm.
func (r *release) ask(lease, holder string) error {
	if r.yes {
		return nil
	}
	if !(term.TTY{In: r.In}).IsTerminalIn() {
		return errors.New("nobody is there to be asked: confirm with --yes")
	}
	_, err := fmt.Fprintf(r.ErrOut, "%q holds Lease %s. If it still runs, it may go on writing until another holder takes over. Release? [y/N] ", holder, lease)
	if err != nil {
		return err
	}
	if !confirmed(r.In) {
		return errors.New("not released")
	}
	return nil
}

// confirmed reads an answer: anything but yes is no.
func confirmed(from io.Reader) bool {
	answer, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// free takes the holder off the Lease, unless somebody else has it by now. All else
// stays: an empty holder alone makes a Lease free, for client-go as for others, and
// a client that only takes it over finds the duration that it had.
func (r *release) free(ctx context.Context, c client.Client, lease *coordinationv1.Lease, holder string) error {
	for try := 1; ; try++ {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]string{"resourceVersion": lease.ResourceVersion},
			"spec":     map[string]string{"holderIdentity": ""},
		})
		if err != nil {
			return err
		}
		err = c.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
		if !apierrors.IsConflict(err) || try == releaseTries {
			return err
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if now := holderOf(lease); now != holder {
			return fmt.Errorf("not released: %q held Lease %s, and now it is %q", holder, lease.Name, now)
		}
	}
}

// holderOf is the holder of a Lease; "" for none.
func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
