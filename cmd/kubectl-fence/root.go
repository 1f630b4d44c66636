package main

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// newCommand is the plugin: a verb for each thing that one does with FencedLeases.
func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := newFactory(streams)
	root := &cobra.Command{
		Use:         "kubectl-fence",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl fence"},
		Short:       "Work with FencedLeases, and with the objects under them",
		Long: text(`
			Work with FencedLeases, and with the objects under them.

			A FencedLease wraps a Lease and hands out a fencing token, larger by one each time the
			Lease changes hands. The API server refuses a write to a guarded object if its token is
			stale. The token that an object was last written with is its mark.

			Where a verb needs a token, it is in --token or in the environment variable
			FENCING_TOKEN. It is the one that you got when you acquired the Lease. Here --token is
			never a bearer token: that one belongs in the kubeconfig.

			Everything that fails exits with status 1 and says what to do; "run" has statuses of its own.`),
		Example: examples(`
			# Who holds which Lease, and with which token
			kubectl fence status

			# What is under a FencedLease, and what of it the current token has written
			kubectl fence status payments

			# Put an object under a FencedLease, and write it
			kubectl fence guard configmap/state --lease payments --token 7
			kubectl fence patch configmap state --token 7 -p 'data: {balance: "100"}'

			# Why a write was refused, and what to do
			kubectl fence explain FencingTokenStale

			# Is the installation sound
			kubectl fence check`),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	f.AddFlags(root.PersistentFlags())
	root.SetUsageTemplate(usageTemplate(root))
	root.SetFlagErrorFunc(seeHelp)
	root.CompletionOptions.DisableDefaultCmd = true // that one is for programs that are no plugins
	addGroups(root)
	root.AddCommand(
		in(groupLook, newStatus(f)),
		in(groupLook, newExplain(f)),
		in(groupWrite, newRun(f)),
		in(groupWrite, newApply(f)),
		in(groupWrite, newPatch(f)),
		in(groupWrite, newDelete(f)),
		in(groupWrite, newSeal(f)),
		in(groupWrite, newGuard(f)),
		in(groupWrite, newUnguard(f)),
		in(groupAdminister, newCheck(f)),
		in(groupAdminister, newRelease(f)),
		newCompletion(f),
		newRunKeeper(),
	)
	return root
}
