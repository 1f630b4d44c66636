package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// seal writes the current token to objects, with no other change.
type seal struct {
	*factory

	token    tokenFlag
	output   output
	selector string
	all      bool
}

func newSeal(f *factory) *cobra.Command {
	s := &seal{factory: f}
	cmd := &cobra.Command{
		Use:   "seal FENCEDLEASE (KIND/NAME… | KIND[,KIND…] -l SELECTOR | --all) [--token TOKEN]",
		Short: "Shut all older tokens out of objects",
		Long: text(`
			Write your token to objects under a FencedLease, with no other change. From then on no
			older token can write them, however late such a write arrives. Do it when you have taken
			over, before you read what you are about to work on.

			An object that has your token already is left alone, once the API server has confirmed
			with a dry run that the token is still the current one.

			With --all, every object under the FencedLease is sealed; if a kind cannot be listed,
			it is an error that names it, because an object that was missed is not sealed.

			With tokenOrder StrictlyNewer a term may write an object once, and the seal
			would be that write: such objects are not sealed.`),
		Example: examples(`
			# Two objects
			kubectl fence seal payments configmap/state widget/front --token 7

			# Those of two kinds that have a label
			kubectl fence seal payments configmaps,widgets.example.com -l app=payments --token 7

			# Everything under the FencedLease, with the token from the environment
			FENCING_TOKEN=7 kubectl fence seal payments --all`),
		Args: arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return f.completeLeases(cmd, args, toComplete)
			}
			return f.completeObjects(cmd, args[1:], toComplete)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0], args[1:]) },
	}
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "Seal those of the named kinds whose labels match.")
	cmd.Flags().BoolVar(&s.all, "all", false, "Seal every object under the FencedLease.")
	s.token.addTo(cmd.Flags())
	s.output.addTo(cmd)
	return cmd
}

func (s *seal) run(cmd *cobra.Command, lease string, args []string) error {
	if s.all == (len(args) > 0) || s.all && s.selector != "" {
		return errors.New("name the objects to seal as KIND/NAME…, or kinds with -l SELECTOR, or say --all alone")
	}
	token, err := s.token.need()
	if err != nil {
		return err
	}
	if err := s.output.complete(cmd); err != nil {
		return err
	}
	if err := s.sealable(cmd.Context(), lease); err != nil {
		return err
	}
	objects, err := s.named(lease, args)
	if len(objects) == 0 && err == nil {
		_, err = fmt.Fprintf(s.ErrOut, "No objects under FencedLease %s found.\n", lease)
	}
	for i := range objects {
		err = errors.Join(err, s.one(&objects[i], lease, token))
	}
	return err
}

// sealable checks that the FencedLease exists, and that a term may write an
// object more than once.
func (s *seal) sealable(ctx context.Context, lease string) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	namespace, err := s.namespace()
	if err != nil {
		return err
	}
	fl, err := s.fencedLease(ctx, c, namespace, lease)
	if err != nil {
		return err
	}
	if fl.Spec.TokenOrder == v1alpha1.TokenOrderStrictlyNewer {
		return fmt.Errorf("FencedLease %s has tokenOrder StrictlyNewer, so the seal would be the only write of your term: write what you have to write instead", lease)
	}
	if fl.Spec.Enforcement == v1alpha1.EnforcementWarn {
		_, err = fmt.Fprintf(s.ErrOut, "Warning: enforcement of FencedLease %s is Warn: older tokens are admitted with a warning, so a seal shuts none out\n", lease)
	}
	return err
}

// named are the objects to seal.
func (s *seal) named(lease string, args []string) ([]object, error) {
	ours := v1alpha1.LabelGuardedBy + "=" + lease
	switch {
	case s.all:
		kinds, unknown, err := s.guardableKinds()
		if err != nil {
			return nil, err
		}
		names := make([]string, 0, len(kinds))
		for _, kind := range kinds {
			names = append(names, kind.argument())
		}
		objects, err := s.objects(ours, strings.Join(names, ","))
		for _, u := range unknown {
			err = errors.Join(err, fmt.Errorf("cannot tell which objects to seal: %s: %s", u.Resource, u.Reason))
		}
		return objects, err
	case s.selector != "":
		return s.objects(s.selector+","+ours, args...)
	default:
		return s.objects("", args...)
	}
}

// one seals an object.
func (s *seal) one(o *object, lease string, token fence.Token) error {
	if by := o.guardedBy(); by != lease {
		what := "under no FencedLease: `kubectl fence guard` puts it under one"
		if by != "" {
			what = "under FencedLease " + by
		}
		return fmt.Errorf("%s is not under FencedLease %s, but %s", o.name(), lease, what)
	}
	// Where nothing would change, the API server would admit any token: so the
	// token is presented afresh, in a dry run.
	sealed := o.mark() == token
	write := keysPatch{Annotations: present(token)}
	if !sealed {
		delete(write.Annotations, v1alpha1.AnnotationWrite)
	}
	after, err := o.patch(write, sealed || s.output.dryRun())
	if err != nil {
		return err
	}
	// The label may have gone meanwhile, and a guard that is not called admits all.
	if o.read(after); o.guardedBy() != lease || o.mark() != token {
		return fmt.Errorf("%s is not sealed: it is under FencedLease %q with token %s", o.name(), o.guardedBy(), o.mark())
	}
	if sealed {
		return s.output.print(s.factory, o.Object, "has token "+token.String()+" already")
	}
	return s.output.print(s.factory, after, "sealed with token "+token.String())
}
