//go:build unix

package run

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/fencedlease/fencedlease/cmd/kubectl-fence/run/keeper"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/leader"
)

// lookInterval is how often the term is looked at: whether it is still there, until
// when it is proven, and whether its token has risen. A term that is lost is told
// at once; this costs no request.
const lookInterval = 50 * time.Millisecond

// statusKilled is that of a command that ended by SIGKILL.
const statusKilled = 128 + int(syscall.SIGKILL)

// job is a Job on its way.
type job struct {
	Job

	log     *log
	path    string // of the command
	scratch string // directory of the kubeconfig
	who     *identity
	gate    *gate
	result  *result
}

// result is how a job ended.
type result struct {
	status  int
	message string // why, where the status is not the command's own
}

// Run competes for the Lease and runs the command once. It returns the exit status.
func (j Job) Run(ctx context.Context) int {
	r := &job{Job: j, log: &log{to: j.Stderr, quiet: j.Quiet}}
	got := r.run(ctx)
	if got.message != "" {
		r.log.fail("%s", got.message)
	}
	return got.status
}

// failed is the result where an error came in between.
func failed(err error) result { return result{StatusFailed, err.Error()} }

func (j *job) run(ctx context.Context) result {
	var err error
	if j.path, err = keeper.LookPath(j.Command[0]); err != nil {
		return result{keeper.ExitStatus(err), err.Error()}
	}
	j.Config = withoutClaim(j.Config)
	options := j.Election
	options.Logger = j.log.logger()
	election, err := leader.New(j.Config, options)
	if err != nil {
		return failed(errors.New(strings.ReplaceAll(err.Error(), "leader: ", "")))
	}
	ctx, stop := context.WithCancel(ctx)
	waiting, stopWaiting := context.WithCancel(ctx)
	j.gate = newGate(stop, stopWaiting)
	defer j.gate.close()

	if err := j.prepare(ctx); err != nil {
		return j.instead(failed(err))
	}
	defer func() { _ = os.RemoveAll(j.scratch) }()
	wait, err := newWaiting(j.Config, options.Namespace, options.Name, election.Identity(), j.log)
	if err != nil {
		return failed(err)
	}
	lease, err := wait.look(ctx)
	if err != nil {
		return j.instead(failed(err))
	}
	lost := "the Lease " + options.Namespace + "/" + options.Name + " was not acquired: "
	if holder := wait.heldBy(lease); holder != "" && j.NoWait {
		return result{StatusNotAcquired, fmt.Sprintf("%s%q holds it", lost, holder)}
	}
	wait.tell(lease)
	switch {
	case j.NoWait:
		go func() {
			if why := wait.untilHeld(waiting, lease, options.RetryPeriod, options.RenewDeadline); why != "" {
				j.gate.giveUp(result{StatusNotAcquired, lost + why})
			}
		}()
	default:
		go wait.progress(waiting)
		if j.Wait > 0 {
			timer := time.AfterFunc(j.Wait, func() {
				j.gate.giveUp(result{StatusNotAcquired, lost + "it was not free within " + j.Wait.String()})
			})
			defer timer.Stop()
		}
	}

	// client-go's elector logs to the context.
	forbidden := func(err error) { j.gate.giveUp(result{StatusFailed, lost + err.Error()}) }
	ctx = klog.NewContext(ctx, logr.New(elector{sink{j.log}, forbidden}))
	if err := election.Run(ctx, j.work); err != nil {
		return j.instead(failed(err))
	}
	if j.result == nil {
		return j.instead(failed(errors.New("the election ended, and nobody knows why")))
	}
	return *j.result
}

// instead is why the gate closed, if it did: then what failed failed for that.
func (j *job) instead(r result) result {
	if closed := j.gate.why(); closed != nil {
		return *closed
	}
	return r
}

// prepare does what needs no term.
func (j *job) prepare(ctx context.Context) error {
	who, missing, err := whoAmI(ctx, j.Config, j.Election.Namespace)
	if err != nil {
		return err
	}
	if j.scratch, err = os.MkdirTemp("", "kubectl-fence-"); err != nil {
		return err
	}
	if j.who = who; who == nil {
		j.log.say("KUBECONFIG is left alone and does not carry the token: %s", missing)
		j.log.say("write with `kubectl fence apply|patch`, which read $%s, or have the role of docs/scripts.md applied, which `kubectl fence check` prints", TokenVariable)
	}
	return nil
}

// work is the term: it seals, and runs the command.
func (j *job) work(ctx context.Context, term *leader.Term) error {
	j.gate.acquired()
	// The term is asked, not its context, which may end a moment later.
	if err := j.seal(ctx, term); err != nil && ctx.Err() == nil && term.Err() == nil {
		return err
	}
	if term.Err() != nil {
		j.gate.lost(j.Wait > 0 || j.NoWait)
		return nil
	}
	if !j.gate.start() {
		return nil
	}
	r, err := j.command(term)
	if err != nil {
		return err
	}
	j.result = &r
	j.gate.end() // a term that was lost is the end, too: the command must not run twice
	return nil
}

// seal seals what is to be sealed. It tries again what may go well the next time.
func (j *job) seal(ctx context.Context, term *leader.Term) error {
	for {
		err := term.Seal(ctx, j.Seal...)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if network := (*url.Error)(nil); isRefusal(err) || !isAnswer(err) && !errors.As(err, &network) {
			return fmt.Errorf("the command was not started: %w", err)
		}
		j.log.trouble(err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(j.Election.RetryPeriod):
		}
	}
}

// command runs the command until it is over, or the term is.
func (j *job) command(term *leader.Term) (result, error) {
	token, deadline := term.Token(), term.Deadline()
	environment, err := j.environment(token)
	if err != nil {
		return result{}, err
	}
	k, err := keeper.Start(keeper.Command{Path: j.path, Args: j.Command, Env: environment, Scratch: j.scratch}, deadline)
	if err != nil {
		return result{}, err
	}
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	var grace <-chan time.Time
	lost := term.Done()
	for {
		select {
		case event := <-k.Events():
			if event.Over != nil {
				return j.over(term, event.Over), nil
			}
			k.Suspend()
		case <-lost:
			// No grace: a term is over the moment that somebody else may lead, and what
			// the command still does, the guard sees only where it writes guarded objects.
			lost = nil
			k.Kill()
		case signal := <-j.gate.signals:
			k.Signal(signal)
			if grace == nil && ends(signal) {
				grace = time.After(j.GracePeriod)
			}
		case <-grace:
			j.log.say("the command did not end within %s, and is killed", j.GracePeriod)
			k.Kill()
		case <-look.C:
			if term.Err() != nil {
				continue // it is lost
			}
			if later := term.Deadline(); !later.Equal(deadline) {
				deadline = later
				k.Extend(deadline)
			}
			if raised := term.Token(); raised != token {
				token = raised
				j.raised(token)
			}
		}
	}
}

// over is the result of a command that is over.
func (j *job) over(term *leader.Term, o *keeper.Outcome) result {
	if o.Immortal > 0 {
		j.log.fail("%d processes of the command run as another user, and could not be killed", o.Immortal)
	}
	switch err := term.Err(); {
	case o.NotStarted != "":
		return result{o.Status, o.NotStarted}
	case o.Killed && err != nil:
		return result{StatusLost, "the command was killed: " + err.Error()}
	case o.Expired:
		return result{StatusLost, "the command was killed: nothing proved the term in time, because this program was stopped, or hung"}
	case o.KeeperGone:
		return result{statusKilled, "the command was killed: the process that watched over it is gone"}
	}
	return result{status: o.Status}
}

// environment is that of the command: ours, and its claim.
func (j *job) environment(token fence.Token) ([]string, error) {
	environment := without(os.Environ(), TokenVariable, FencedLeaseVariable)
	environment = append(environment,
		TokenVariable+"="+token.String(),
		FencedLeaseVariable+"="+j.Election.Namespace+"/"+j.FencedLease)
	if j.who == nil {
		return environment, nil
	}
	if err := j.who.write(j.kubeconfig(), token); err != nil {
		return nil, fmt.Errorf("the kubeconfig of the command cannot be written: %w", err)
	}
	return append(without(environment, kubeconfigVariable), kubeconfigVariable+"="+j.kubeconfig()), nil
}

// raised gives the command its new token, as far as that can be done: requests of
// kubectl that are on their way carry the old one, and so does the environment.
func (j *job) raised(token fence.Token) {
	if j.who == nil {
		return
	}
	if err := j.who.write(j.kubeconfig(), token); err != nil {
		j.log.fail("the kubeconfig of the command still has its old token: %v", err)
	}
}

func (j *job) kubeconfig() string { return filepath.Join(j.scratch, "kubeconfig") }

// without is an environment without these variables.
func without(environment []string, names ...string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(names, name)
	})
}
