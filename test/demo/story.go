package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// act is one telling of the story.
type act struct {
	name    string
	title   string
	guarded bool
}

var (
	withoutGuard = act{name: "before", title: "1. Without a guard: a Lease alone"}
	withGuard    = act{name: "now", title: "2. With a guard: FencedLease", guarded: true}
)

// ending is how a telling ended.
type ending struct {
	accepted int    // writes of the former leader that were accepted after its successor's
	refused  int    // and those that were refused with HTTP 412
	balance  string // what the account says in the end
}

const accountManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: account-99}
data: {balance: "40000"}
`

const fencedLeaseManifest = `
apiVersion: fencedlease.io/v1alpha1
kind: FencedLease
metadata: {name: payments}
`

// The balances that the two leaders write.
const (
	staleBalance = "10000"
	rightBalance = "50000"
)

// tell tells the story once: a leader is paused in mid-work, another takes over
// and writes, the first wakes up and writes what it had in mind.
func (s *stage) tell(ctx context.Context, a act) (end ending, err error) {
	s.say("\n%s\n", a.title)
	if err := s.setTheScene(ctx, a); err != nil {
		return ending{}, err
	}

	first, err := s.start(ctx, a.name, "worker-1", staleBalance, 0)
	if err != nil {
		return ending{}, err
	}
	defer func() { err = errors.Join(err, first.stop()) }()
	if err := s.pauseInMidWork(ctx, first); err != nil {
		return ending{}, err
	}

	// It writes once, so that what follows is the former leader's alone.
	second, err := s.start(ctx, a.name, "worker-2", rightBalance, 1)
	if err != nil {
		return ending{}, err
	}
	defer func() { err = errors.Join(err, second.stop()) }()
	began := time.Now()
	token, err := second.await(ctx, saidLeads, 0)
	if err != nil {
		return ending{}, err
	}
	s.say("  %4.1f s  worker-2 takes over%s", time.Since(began).Seconds(), withToken(token))
	if _, err := second.await(ctx, saidWrote, 0); err != nil {
		return ending{}, err
	}
	s.say("          worker-2 writes balance %s", rightBalance)

	end, err = s.wakeUp(ctx, a, first)
	return end, err
}

// setTheScene makes the account and, in the second act, its guard.
func (s *stage) setTheScene(ctx context.Context, a act) error {
	if !a.guarded {
		if err := s.allow(ctx); err != nil {
			return err
		}
		_, err := s.kubectl(ctx, accountManifest, "apply", "-f", "-")
		return err
	}
	if _, err := s.kubectl(ctx, fencedLeaseManifest, "apply", "-f", "-"); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "", "wait", "fencedlease", leaseName, "--for=condition=Ready", "--timeout=60s"); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, "", "label", "configmap", account, "fencedlease.io/guarded-by="+leaseName)
	return err
}

// pauseInMidWork waits until a leader has written and thinks again, and stops it
// there: between the check that it leads, and the write.
func (s *stage) pauseInMidWork(ctx context.Context, first *actor) error {
	token, err := first.await(ctx, saidLeads, 0)
	if err != nil {
		return err
	}
	s.say("   0.0 s  worker-1 works: it has taken the Lease%s", withToken(token))
	if _, err := first.await(ctx, saidWrote, 0); err != nil {
		return err
	}
	seen, err := first.lines()
	if err != nil {
		return err
	}
	if _, err := first.await(ctx, saidThinks, len(seen)); err != nil {
		return err
	}
	if err := first.pause(); err != nil {
		return err
	}
	s.say("          worker-1 is stopped (SIGSTOP), about to write balance %s", staleBalance)
	return nil
}

// wakeUp resumes the former leader and counts what it still writes, until
// client-go tells it that it leads no more.
func (s *stage) wakeUp(ctx context.Context, a act, first *actor) (ending, error) {
	asleep, err := first.lines()
	if err != nil {
		return ending{}, err
	}
	if err := first.resume(); err != nil {
		return ending{}, err
	}
	woke := time.Now()
	s.say("          worker-1 is resumed (SIGCONT)")
	if _, err := first.await(ctx, saidStopped, len(asleep)); err != nil {
		return ending{}, err
	}
	accepted, err := first.said(saidWrote, len(asleep))
	if err != nil {
		return ending{}, err
	}
	refused, err := first.said(saidRefused, len(asleep))
	if err != nil {
		return ending{}, err
	}
	for _, why := range refused {
		if !strings.HasPrefix(why, "412 FencingTokenStale: ") {
			return ending{}, errors.New("a late write was refused, but not as stale: " + why)
		}
	}
	if len(accepted) > 0 {
		s.say("          worker-1 writes balance %s: accepted", staleBalance)
	}
	if len(refused) > 0 {
		s.say("          worker-1 writes balance %s: HTTP %s", staleBalance, refused[0])
	}
	s.say("          client-go tells worker-1 that it leads no more %.1f s after it was resumed\n", time.Since(woke).Seconds())

	balance, err := s.kubectl(ctx, "", "get", "configmap", account, "-o", "jsonpath={.data.balance}")
	if err != nil {
		return ending{}, err
	}
	end := ending{accepted: len(accepted), refused: len(refused), balance: strings.TrimSpace(balance)}
	if !a.guarded {
		s.say("  The late write won: worker-2's %s is lost.", rightBalance)
		return end, nil
	}
	if err := s.awaitStatus(ctx, "{.status.token}=2"); err != nil {
		return ending{}, err
	}
	table, err := s.kubectl(ctx, "", "get", "fencedlease", leaseName)
	if err != nil {
		return ending{}, err
	}
	if fields := strings.Fields(table[strings.IndexByte(table, '\n')+1:]); len(fields) < 3 || fields[1] != "worker-2" || fields[2] != "2" {
		return ending{}, errors.New("kubectl get fencedlease does not show worker-2 with token 2")
	}
	s.say("  The late write was refused: worker-2's %s stands.", rightBalance)
	return end, nil
}

// awaitStatus waits, unseen, until the status of the FencedLease has caught up.
func (s *stage) awaitStatus(ctx context.Context, jsonPath string) error {
	result, err := s.cluster.Kubectl(ctx, "wait", "fencedlease", leaseName, "--for=jsonpath="+jsonPath, "--timeout=60s")
	if err == nil && result.ExitCode != 0 {
		err = errors.New(result.Stderr)
	}
	return err
}

func withToken(token string) string {
	if token == "" {
		return ""
	}
	return ", with token " + token
}

// compare prints both endings side by side. It fails unless the first lost data,
// and the second did not.
func (s *stage) compare(before, now ending) error {
	s.say("")
	table := tabwriter.NewWriter(s.out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintf(table, "  \tbefore\tnow\n")
	_, _ = fmt.Fprintf(table, "  late writes accepted\t%d\t%d\n", before.accepted, now.accepted)
	_, _ = fmt.Fprintf(table, "  late writes refused (412)\t%d\t%d\n", before.refused, now.refused)
	_, _ = fmt.Fprintf(table, "  balance in the end\t%s\t%s\n", before.balance, now.balance)
	if err := table.Flush(); err != nil {
		return err
	}
	if before.accepted == 0 || before.refused != 0 || before.balance != staleBalance {
		return fmt.Errorf("without a guard, the late write should have won: %+v", before)
	}
	if now.accepted != 0 || now.refused == 0 || now.balance != rightBalance {
		return fmt.Errorf("with the guard, every late write should have been refused: %+v", now)
	}
	return nil
}
