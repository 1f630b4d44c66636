package load

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

const (
	handOvers       = 1000
	renewalsPerTerm = 2
)

// TestThousandHandOvers: three candidates with the leader election of client-go
// hand one Lease round a thousand times. The tokens are 1 to 1000, each once, and
// the webhook is asked for them only.
func TestThousandHandOvers(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	admin, err := kubernetes.NewForConfig(w.Admin.Config)
	w.Must(err)
	var seen history[*coordinationv1.Lease]
	seen.record(w, admin.CoordinationV1().Leases(w.Namespace), w.Lease("payments"))
	before := calls(w, "/mint")

	began := time.Now()
	wires := handRound(w, "payments", "alpha", "beta", "gamma")
	t.Logf("%d hand-overs in %s", handOvers, time.Since(began).Round(time.Second))

	tokensOnLease(t, seen.until(w, w.Lease("payments")))
	tokensInAnswers(t, wires)
	mintsAsked(w, wires, before)
	w.AwaitToken("payments", handOvers)
}

// tokensOnLease checks that each term has the next token and another holder.
func tokensOnLease(t *testing.T, revisions []*coordinationv1.Lease) {
	t.Helper()
	var token fence.Token
	var holder string
	for _, lease := range revisions {
		keys := suite.Keys(lease)
		if got := keys.CurrentToken(); got == token {
			continue
		} else if got != token+1 {
			t.Fatalf("revision %s: token %s follows %s", lease.ResourceVersion, got, token)
		}
		if keys.TokenFor == holder || lease.Spec.HolderIdentity == nil || keys.TokenFor != *lease.Spec.HolderIdentity {
			t.Fatalf("revision %s: token %s is for %q and follows one for %q", lease.ResourceVersion, keys.Token, keys.TokenFor, holder)
		}
		token, holder = token+1, keys.TokenFor
	}
	if token != handOvers {
		t.Errorf("the last token is %s, want %d", token, handOvers)
	}
	t.Logf("the watch saw %d revisions of the Lease, with tokens 1 to %s without a gap", len(revisions), token)
}

// tokensInAnswers checks that each token was told to one candidate only, in the
// answer to its acquisition.
func tokensInAnswers(t *testing.T, wires []*wire) {
	t.Helper()
	told := map[string]string{}
	for _, wire := range wires {
		for _, write := range wire.writes {
			if !write.acquires || !write.accepted() {
				continue
			}
			if to, twice := told[write.keys.Token]; twice {
				t.Errorf("token %s was told to %s and to %s", write.keys.Token, to, write.holder)
			}
			if write.keys.TokenFor != write.holder {
				t.Errorf("the answer to %s has token %s for %q", write.holder, write.keys.Token, write.keys.TokenFor)
			}
			told[write.keys.Token] = write.holder
		}
	}
	for token := fence.Token(1); token <= handOvers; token++ {
		if told[token.String()] == "" {
			t.Errorf("token %s is in no answer", token)
		}
	}
	if len(told) != handOvers {
		t.Errorf("%d tokens in answers, want %d", len(told), handOvers)
	}
}

// mintsAsked compares the calls of the webhook with what was sent. An attempt
// that lost a race may count twice: the API server tries a write on the object in
// its watch cache first, and once more on the stored one, if that is newer. For
// the same reason a few others do.
func mintsAsked(w *suite.World, wires []*wire, before int) {
	w.T.Helper()
	var acquired, lost, renewed, unanswered, released int
	for _, wire := range wires {
		acquired += wire.seen(func(l leaseWrite) bool { return l.acquires && l.accepted() })
		lost += wire.seen(func(l leaseWrite) bool { return l.acquires && !l.accepted() })
		renewed += wire.seen(func(l leaseWrite) bool { return l.renews() && l.accepted() })
		unanswered += wire.seen(func(l leaseWrite) bool { return l.renews() && !l.accepted() })
		released += wire.seen(func(l leaseWrite) bool { return l.holder == "" && l.accepted() })
	}
	asked := calls(w, "/mint") - before
	w.T.Logf("mint was called %d times, for %d acquisitions and %d attempts that lost a race; not for %d renewals (%d more were broken off) and %d releases",
		asked, acquired, lost, renewed, unanswered, released)
	if acquired != handOvers || released != handOvers || renewed < handOvers*renewalsPerTerm {
		w.T.Errorf("want %d acquisitions and releases, and %d renewals of each term", handOvers, renewalsPerTerm)
	}
	const few = handOvers / 10
	if most := acquired + 2*lost + unanswered + few; asked < acquired || asked > most {
		w.T.Errorf("mint was called %d times, want from %d to %d", asked, acquired, most)
	}
}

// candidates hand a Lease round.
type candidates struct {
	w     *suite.World
	stop  context.CancelFunc
	mu    sync.Mutex
	terms int
	next  chan struct{} // closed when the next term starts
}

// handRound lets candidates lead in turns, until the last term is over.
func handRound(w *suite.World, lease string, names ...string) []*wire {
	w.T.Helper()
	ctx, stop := context.WithCancel(klog.NewContext(w.Ctx, logr.Discard()))
	defer stop()
	all := &candidates{w: w, stop: stop, next: make(chan struct{})}
	var wires []*wire
	var running sync.WaitGroup
	for _, name := range names {
		wire := &wire{}
		client, err := wire.client(w.Pod(name))
		w.Must(err)
		wires = append(wires, wire)
		running.Go(func() {
			if err := all.stand(ctx, wire, leaseLock(w.Namespace, lease, name, client)); err != nil {
				w.T.Error(err)
				stop()
			}
		})
	}
	running.Wait()
	if w.Ctx.Err() != nil {
		w.T.Fatalf("gave up after %d terms: %v", all.terms, w.Ctx.Err())
	}
	return wires
}

// stand leads for a term after the other, never twice in a row: it stands again
// only when another leads.
func (c *candidates) stand(ctx context.Context, wire *wire, lock *resourcelock.LeaseLock) error {
	for ctx.Err() == nil {
		term, resign := context.WithCancel(ctx)
		renewed, renewals := make(chan struct{}), 0
		wire.after = func(l leaseWrite) {
			if l.renews() && l.accepted() {
				if renewals++; renewals == renewalsPerTerm {
					close(renewed)
				}
			}
		}
		led := make(chan (<-chan struct{}), 1)
		config := quick(lock)
		config.ReleaseOnCancel = true
		config.Callbacks.OnStartedLeading = func(leading context.Context) {
			led <- c.started()
			select {
			case <-renewed:
			case <-leading.Done():
			}
			c.ended()
			resign()
		}
		elector, err := leaderelection.NewLeaderElector(config)
		if err != nil {
			resign()
			return err
		}
		elector.Run(term)
		resign()
		select {
		case next := <-led:
			select {
			case <-next:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}
	return nil
}

// started notes that a term began; the result is closed when the next does.
func (c *candidates) started() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.next = make(chan struct{})
	c.terms++
	if c.terms%100 == 0 {
		c.w.T.Logf("hand-over %d of %d", c.terms, handOvers)
	}
	return c.next
}

// ended stops all candidates when the last term is over.
func (c *candidates) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.terms == handOvers {
		c.stop()
	}
}

// quick is a leader election that tries often and never lets a Lease expire,
// however busy the machine is.
func quick(lock resourcelock.Interface) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: 60 * time.Second,
		RenewDeadline: 40 * time.Second,
		RetryPeriod:   10 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	}
}

func leaseLock(namespace, name, identity string, client kubernetes.Interface) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}
