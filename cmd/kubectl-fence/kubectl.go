package main

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/apply"
	kubectldelete "k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/patch"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/fencedlease/fencedlease/internal/claim"
)

func newApply(f *factory) *cobra.Command {
	return f.carrying(func(kubectl cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
		cmd := apply.NewCmdApply("kubectl fence", kubectl, streams)
		// They show and edit an annotation of kubectl's own, for which kubectl will do.
		cmd.RemoveCommand(cmd.Commands()...)
		cmd.Flags().Lookup("force").Usage += " Not for guarded objects: one that is refused with 422 is deleted, and its mark with it."
		return cmd
	}, "Apply manifests, with a fencing token", `
		# Apply a manifest that has no token in it
		kubectl fence apply -f state.yaml --token 7

		# Server-side, with the token from the environment
		FENCING_TOKEN=7 kubectl fence apply --server-side -f state.yaml

		# Ask whether it would be admitted
		kubectl fence apply -f state.yaml --token 7 --dry-run=server`)
}

func newPatch(f *factory) *cobra.Command {
	return f.carrying(patch.NewCmdPatch, "Patch an object, with a fencing token", `
		# A change of data; the patch says nothing about tokens
		kubectl fence patch configmap state --token 7 -p 'data: {balance: "100"}'

		# A JSON patch
		kubectl fence patch configmap state --token 7 --type=json \
		  -p '[{"op": "replace", "path": "/data/balance", "value": "100"}]'

		# The status of a custom resource
		kubectl fence patch widget front --token 7 --subresource=status --type=merge -p 'status: {ready: true}'`)
}

func newDelete(f *factory) *cobra.Command {
	return f.carrying(kubectldelete.NewCmdDelete, "Delete objects, with a fencing token", `
		# By name
		kubectl fence delete configmap state --token 7

		# By label, with the token from the environment
		FENCING_TOKEN=7 kubectl fence delete configmaps -l app=payments`)
}

const carryingLong = `
	This is kubectl's own command, with all its flags. Each of its writes presents your fencing
	token, so the manifest, or the patch, needs none. Guarded objects are written only if the
	token is the current one. Others are written as ever; the token may stay on them as
	an annotation, where it means nothing.

	The token goes into the write itself where there is room for it. Where there is none (a
	delete, a JSON patch, a write to /status) it goes beside the request, as an extra of the
	user. For that you need the right to impersonate yourself: "kubectl fence check" says whether
	you have it, and how to get it.`

// carrying is a command of kubectl whose writes carry the token.
func (f *factory) carrying(command func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command, short, example string) *cobra.Command {
	cmd := command(f.kubectl(), f.IOStreams)
	cmd.Short = short
	cmd.Long = text(carryingLong) + "\n\nWhat kubectl says of it:\n\n" + cmd.Long
	cmd.Example = examples(example)
	cmd.Use = strings.TrimSpace(cmd.Use) + " [--token TOKEN]"
	token := &tokenFlag{}
	token.addTo(cmd.Flags())
	run := cmd.Run
	cmd.Run = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fencingToken, err := token.need()
		if err != nil {
			return err
		}
		f.wrap(func(config *rest.Config) *rest.Config { return claim.Wrap(config, claim.Fixed(fencingToken)) })
		return caught(func() { run(cmd, args) })
	}
	return cmd
}

// failure is how a command of kubectl ends that fails, once [failByPanic] was
// called: kubectl's own words, and its exit status.
type failure struct {
	message string
	status  int
}

// Error is what kubectl would have printed; "" if it printed it already.
func (f failure) Error() string { return f.message }

// ExitStatus is the one that kubectl would have ended with.
func (f failure) ExitStatus() int { return f.status }

// failByPanic has the commands of kubectl fail with a panic that [caught] turns
// into an error, where they would end the process: kubectl offers no other way to
// hear of it, and keeps this in a variable of its own. Only main calls it.
func failByPanic() {
	cmdutil.BehaviorOnFatal(func(message string, status int) { panic(failure{message, status}) })
}

// caught runs a command of kubectl, and returns how it failed.
func caught(run func()) (err error) {
	defer func() {
		switch recovered := recover().(type) {
		case nil:
		case failure:
			err = recovered
		default:
			panic(recovered)
		}
	}()
	run()
	return nil
}
