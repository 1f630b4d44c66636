package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/cmd/kubectl-fence/run"
	"github.com/fencedlease/fencedlease/leader"
)

// gracePeriod is how long a command may take to end after a signal.
const gracePeriod = 10 * time.Second

// runCommand runs a command in a term.
type runCommand struct {
	*factory

	job  run.Job
	seal []string
}

func newRun(f *factory) *cobra.Command {
	r := &runCommand{factory: f}
	cmd := &cobra.Command{
		Use:   "run FENCEDLEASE [flags] -- COMMAND [ARG…]",
		Short: "Run a command while you hold a Lease, and no longer",
		Long: text(`
			Take the Lease of a FencedLease, run a command, and release the Lease when the command
			has ended. The Lease is renewed meanwhile. If it is lost, the command is killed at once,
			with everything that it has started: it does not work on beside the next holder.

			The command gets, in its environment:

			  FENCING_TOKEN   the token of the term
			  FENCED_LEASE    namespace and name of the FencedLease
			  KUBECONFIG      a file that makes every kubectl, and every other client, carry the token

			So scripts stay as they are: plain "kubectl apply" writes guarded objects, and is refused
			once the term is over. For KUBECONFIG you need the right to impersonate yourself; without
			it, a message says so, KUBECONFIG is left alone, and "kubectl fence apply" and "patch" take
			the token from FENCING_TOKEN. The page docs/scripts.md has the role.

			With --seal, objects get the new token before the command starts: no write of an earlier
			term, however late, changes what the command reads. If it cannot be done, the command does
			not start.

			Ctrl-C and SIGTERM go to the command, which may clean up, and still write, for the grace
			period. What the command leaves running in the background is killed before the Lease is
			released.

			Exit status: that of the command (128 and the number of the signal that killed it), or

			  75    the Lease was not acquired in the time of --wait or --no-wait, nothing was run
			  76    the term was lost, and the command killed
			  125   something else failed: the arguments, a right, a seal, the API server
			  126   the command cannot be executed
			  127   the command was not found`),
		Example: examples(`
			# A script that is never run twice at a time, and whose writes carry the token
			kubectl fence run payments -- ./settle.sh

			# From cron: if it is running somewhere already, leave it at that
			kubectl fence run payments --no-wait -- ./settle.sh || [ $? = 75 ]

			# Shut out late writes to what the script is about to read
			kubectl fence run payments --seal configmap/state --seal widgets.example.com -- ./settle.sh

			# Another store than the API server gets the token as well
			kubectl fence run payments -- sh -c 'psql -v token="$FENCING_TOKEN" -f settle.sql'`),
		ValidArgsFunction: f.completeLeases,
		RunE:              r.run,
	}
	flags := cmd.Flags()
	flags.DurationVar(&r.job.Wait, "wait", 0, "Wait for the Lease no longer than this. Waits for ever by default.")
	flags.BoolVar(&r.job.NoWait, "no-wait", false, "Do not wait for somebody else who holds the Lease. One that its holder left behind is taken, once it has expired.")
	flags.StringArrayVar(&r.seal, "seal", nil, "Seal KIND/NAME, or all of KIND that the FencedLease guards, before the command starts. May be repeated.")
	flags.DurationVar(&r.job.GracePeriod, "grace-period", gracePeriod, "How long the command may take to end after Ctrl-C or SIGTERM.")
	flags.DurationVar(&r.job.Election.LeaseDuration, "lease-duration", 0, "How long others leave the Lease alone when it is not renewed. Defaults to what the FencedLease says, 15s if it says nothing.")
	flags.DurationVar(&r.job.Election.RenewDeadline, "renew-deadline", 0, "How long after its last renewal the term is lost. Defaults to two thirds of the lease duration.")
	flags.DurationVar(&r.job.Election.RetryPeriod, "retry-period", 0, "Time between two renewals, or two tries to take the Lease. Defaults to 2s, or less with a short lease duration.")
	flags.StringVar(&r.job.Election.Identity, "identity", "", "Name of the holder on the Lease: another one for each run. Defaults to the name of the host and a random suffix.")
	flags.BoolVarP(&r.job.Quiet, "quiet", "q", false, "Say nothing but why the exit status is not the command's.")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return notRun(err) })
	return cmd
}

// newRunKeeper is the process of ours that a command runs under.
func newRunKeeper() *cobra.Command {
	return &cobra.Command{
		Use:   run.Keeper,
		Short: "Watch over the command of a run",
		Long: text(`
			Watch over the command of "kubectl fence run", which starts this process itself, and kill
			it when its term is over: even if the run was killed, stopped or hangs. It is nothing to
			be started by hand.`),
		Example: examples(`
			# Starts it
			kubectl fence run payments -- ./settle.sh`),
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return run.Keep(args) },
	}
}

// notRun is an error of run itself, with its exit status.
func notRun(err error) error {
	return failure{"kubectl fence run: " + strings.TrimPrefix(message(err), "error: "), run.StatusFailed}
}

func (r *runCommand) run(cmd *cobra.Command, args []string) error {
	if err := r.complete(cmd, args); err != nil {
		return notRun(err)
	}
	if status := r.job.Run(cmd.Context()); status != 0 {
		return failure{"", status}
	}
	return nil
}

// complete finds out what there is to do, and what the FencedLease says about it.
func (r *runCommand) complete(cmd *cobra.Command, args []string) (err error) {
	flags := cmd.Flags()
	switch {
	case cmd.ArgsLenAtDash() != 1 || len(args) < 2:
		return errors.New("name a FencedLease, then --, then the command: kubectl fence run payments -- ./settle.sh")
	case flags.Changed("wait") && (r.job.NoWait || r.job.Wait <= 0):
		return errors.New("--wait takes a time, such as 30s; to wait for ever, leave it out, and not to wait, say --no-wait alone")
	case r.job.GracePeriod < 0:
		return errors.New("--grace-period cannot be negative")
	}
	r.job.FencedLease, r.job.Command, r.job.Stderr = args[0], args[1:], r.ErrOut
	if r.job.Config, err = r.ToRESTConfig(); err != nil {
		return err
	}
	namespace, err := r.namespace()
	if err != nil {
		return err
	}
	c, err := r.client()
	if err != nil {
		return err
	}
	fl, err := r.fencedLease(cmd.Context(), c, namespace, r.job.FencedLease)
	if err != nil {
		return err
	}
	if fl.Spec.TokenOrder == v1alpha1.TokenOrderStrictlyNewer && len(r.seal) > 0 {
		return fmt.Errorf("FencedLease %s has tokenOrder StrictlyNewer, so the seal would be the only write of your term: leave --seal out", fl.Name)
	}
	r.job.Election.Namespace, r.job.Election.Name = namespace, fl.LeaseName()
	completeTimings(&r.job.Election, time.Duration(fl.Spec.LeaseDurationSeconds)*time.Second)
	r.job.Seal, err = r.targets()
	return err
}

// completeTimings fills in what was not given, in the proportions of the defaults.
func completeTimings(o *leader.Options, asked time.Duration) {
	if o.LeaseDuration == 0 {
		o.LeaseDuration = asked
	}
	if o.LeaseDuration == 0 {
		o.LeaseDuration = leader.DefaultLeaseDuration
	}
	if o.RenewDeadline == 0 {
		o.RenewDeadline = o.LeaseDuration * 2 / 3 // 10s of 15s
	}
	if o.RetryPeriod == 0 {
		o.RetryPeriod = min(leader.DefaultRetryPeriod, o.RenewDeadline/5) // 2s of 10s
	}
}

// targets are what --seal names.
func (r *runCommand) targets() ([]leader.Target, error) {
	targets := make([]leader.Target, 0, len(r.seal))
	for _, argument := range r.seal {
		kind, name, named := strings.Cut(argument, "/")
		if kind == "" || named && name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("--seal is %q: name an object as KIND/NAME, or all of a KIND", argument)
		}
		resource, err := r.resource(kind)
		if err != nil {
			return nil, fmt.Errorf("--seal %s: %w", argument, err)
		}
		target := leader.Target{Resource: resource}
		if named {
			target.Names = []string{name}
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// resource is what somebody calls by its plural, singular, short name or kind, with
// or without version and group.
func (r *runCommand) resource(argument string) (schema.GroupVersionResource, error) {
	mapper, err := r.ToRESTMapper()
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	versioned, grouped := schema.ParseResourceArg(argument)
	found := schema.GroupVersionResource{}
	if versioned != nil {
		found, err = mapper.ResourceFor(*versioned)
	}
	if versioned == nil || err != nil {
		found, err = mapper.ResourceFor(grouped.WithVersion(""))
	}
	if meta.IsNoMatchError(err) {
		return found, fmt.Errorf("the server doesn't have a resource type %q", argument)
	}
	if err != nil {
		return found, err
	}
	kind, err := mapper.KindFor(found)
	if err != nil {
		return found, err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return found, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return found, errors.New("it belongs to no namespace, and a FencedLease guards those of its own")
	}
	return found, nil
}
