package leader

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

const me, other = "me", "other"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// script answers requests for Leases as a test says. It knows no rules: what an
// API server does with ours is tested against a real one.
type script struct {
	coordinationclient.LeaseInterface

	clock    *clocktesting.FakeClock
	takes    time.Duration
	answer   *coordinationv1.Lease
	err      error
	requests int
}

func (s *script) Leases(string) coordinationclient.LeaseInterface { return s }

func (s *script) reply() (*coordinationv1.Lease, error) {
	s.requests++
	s.clock.Step(s.takes)
	return s.answer.DeepCopy(), s.err
}

func (s *script) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return s.reply()
}

func (s *script) Create(context.Context, *coordinationv1.Lease, metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return s.reply()
}

func (s *script) Update(context.Context, *coordinationv1.Lease, metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return s.reply()
}

// lease is a fenced Lease, held since the start.
func lease(holder, token string, change ...func(*coordinationv1.Lease)) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(start)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{v1alpha1.LabelFencedBy: "payments"},
			Annotations: map[string]string{
				v1alpha1.AnnotationToken: token, v1alpha1.AnnotationTokenFor: holder, v1alpha1.AnnotationTokenHolder: "pod/1",
			},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed},
	}
	for _, c := range change {
		c(l)
	}
	return l
}

func tokenFor(identity string) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) { l.Annotations[v1alpha1.AnnotationTokenFor] = identity }
}

func unlabelled(l *coordinationv1.Lease) { l.Labels = nil }

func retired(l *coordinationv1.Lease) { l.Labels[v1alpha1.LabelRetired] = v1alpha1.RetiredTrue }

func renewedAt(t time.Time) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) { l.Spec.RenewTime = &metav1.MicroTime{Time: t} }
}

// candidate is a candidate whose requests are answered by a script.
type candidate struct {
	*Election

	t     *testing.T
	api   *script
	clock *clocktesting.FakeClock
	lock  *lock
	ended int
}

func newCandidate(t *testing.T) *candidate {
	t.Helper()
	c := &candidate{t: t, clock: clocktesting.NewFakeClock(start)}
	c.api = &script{clock: c.clock}
	options, err := Options{Namespace: "prod", Name: "payments", Identity: me, Clock: c.clock, Logger: logr.Discard()}.complete()
	if err != nil {
		t.Fatal(err)
	}
	c.Election = &Election{options: options, leases: c.api}
	if c.metrics, err = newMetrics(c.Election); err != nil {
		t.Fatal(err)
	}
	c.lock = c.newLock(func() { c.ended++ })
	return c
}

// acquire makes the candidate lead with token 7.
func (c *candidate) acquire() *Term {
	c.t.Helper()
	_ = c.reads(lease(other, "1"), nil)
	if err := c.writes(lease(me, "7"), nil); err != nil {
		c.t.Fatal(err)
	}
	term := c.Term()
	if term == nil {
		c.t.Fatal("the candidate leads not")
	}
	return term
}

func (c *candidate) reads(answer *coordinationv1.Lease, failure error) error {
	c.api.answer, c.api.err = answer, failure
	_, _, err := c.lock.Get(c.t.Context())
	return err
}

// writes acquires or renews, at the time that the clock shows.
func (c *candidate) writes(answer *coordinationv1.Lease, failure error) error {
	c.api.answer, c.api.err = answer, failure
	return c.lock.Update(c.t.Context(), resourcelock.LeaderElectionRecord{
		HolderIdentity: me, RenewTime: metav1.NewTime(c.clock.Now()), AcquireTime: metav1.NewTime(start),
	})
}

func conflict() error {
	return apierrors.NewConflict(coordinationv1.Resource("leases"), "payments", errors.New("changed"))
}

// A term goes on, or is over for a reason, by what an answer shows.
func TestAnswersDecideAboutTheTerm(t *testing.T) {
	read := func(l *coordinationv1.Lease) func(*candidate) { return func(c *candidate) { _ = c.reads(l, nil) } }
	renewal := func(l *coordinationv1.Lease) func(*candidate) { return func(c *candidate) { _ = c.writes(l, nil) } }
	refusal := func(current fence.Token, holder string, then *coordinationv1.Lease) func(*candidate) {
		return func(c *candidate) {
			c.api.answer, c.api.err = then, nil
			c.Term().refused(c.t.Context(), fence.Refusal{
				Code: http.StatusPreconditionFailed, Reason: fence.ReasonStale,
				Facts: fence.Facts{Presented: 7, Current: current, Holder: holder},
			})
		}
	}
	lateRenewal := start.Add(2 * time.Second)
	tests := map[string]struct {
		happens   func(*candidate)
		wantLost  error
		wantToken fence.Token
	}{
		"a renewal":                                           {renewal(lease(me, "7")), nil, 7},
		"a renewal in which the token rises":                  {renewal(lease(me, "9")), nil, 9},
		"a renewal of a counter that was lost":                {renewal(lease(me, "3")), ErrSuperseded, 7},
		"a renewal of a Lease that is fenced no more":         {renewal(lease(me, "7", unlabelled)), ErrUnfenced, 7},
		"a renewal of a retired Lease":                        {renewal(lease(me, "7", retired)), ErrUnfenced, 7},
		"a renewal whose token went to another":               {renewal(lease(me, "7", tokenFor(other))), ErrUnfenced, 7},
		"a read that shows the same":                          {read(lease(me, "7")), nil, 7},
		"a read while the token is about to rise":             {read(lease(me, "7", tokenFor(""))), nil, 7},
		"a read that shows another holder":                    {read(lease(other, "8")), ErrSuperseded, 7},
		"a read that shows another holder and no newer token": {read(lease(other, "7", tokenFor(me))), ErrSuperseded, 7},
		"a read that shows no holder":                         {read(lease("", "7", tokenFor(me))), ErrTakenAway, 7},
		"a read that shows a newer token of the same name":    {read(lease(me, "8")), ErrSuperseded, 7},
		"a read that shows a newer token, given to another":   {read(lease(me, "8", tokenFor(other))), ErrSuperseded, 7},
		"a read of a counter that was lost":                   {read(lease(me, "3")), ErrSuperseded, 7},
		"a read of a retired Lease":                           {read(lease(me, "7", retired)), ErrUnfenced, 7},
		"a Lease that is deleted": {func(c *candidate) {
			_ = c.reads(nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "payments"))
		}, ErrTakenAway, 7},
		"a read that fails":                                   {func(c *candidate) { _ = c.reads(nil, errors.New("no route to host")) }, nil, 7},
		"a renewal that fails":                                {func(c *candidate) { _ = c.writes(nil, errors.New("no route to host")) }, nil, 7},
		"a refusal that names another holder":                 {refusal(8, other, nil), ErrSuperseded, 7},
		"a refusal that names no newer token":                 {refusal(7, other, nil), nil, 7},
		"a refusal that names nobody, and the Lease is held":  {refusal(8, "", lease(me, "7", tokenFor(""))), nil, 7},
		"a refusal that names nobody, and another holds it":   {refusal(8, "", lease(other, "8")), ErrSuperseded, 7},
		"a refusal that names us, for another under our name": {refusal(8, me, lease(me, "8")), ErrSuperseded, 7},
		"a refusal that names us, when the renewal has arrived": {func(c *candidate) {
			_ = c.writes(lease(me, "8"), nil)
			refusal(8, me, lease(other, "9"))(c) // not even asked for
		}, nil, 8},
		"a newer token in a renewal whose answer did not arrive": {func(c *candidate) {
			c.clock.SetTime(lateRenewal)
			_ = c.writes(nil, errors.New("connection reset"))
			_ = c.reads(lease(me, "8", renewedAt(lateRenewal)), nil)
		}, nil, 8},
		"a newer token in the last but one renewal whose answer did not arrive": {func(c *candidate) {
			c.clock.SetTime(lateRenewal)
			_ = c.writes(nil, errors.New("connection reset"))
			c.clock.SetTime(lateRenewal.Add(time.Second))
			_ = c.writes(nil, conflict())
			_ = c.reads(lease(me, "8", renewedAt(lateRenewal)), nil)
		}, nil, 8},
		"a newer token, but the renewal whose answer did not arrive was not stored": {func(c *candidate) {
			c.clock.SetTime(lateRenewal)
			_ = c.writes(nil, errors.New("connection reset"))
			_ = c.reads(lease(me, "8", renewedAt(start)), nil)
		}, ErrSuperseded, 7},
		"a newer token, and the renewal was refused": {func(c *candidate) {
			c.clock.SetTime(lateRenewal)
			_ = c.writes(nil, conflict())
			_ = c.reads(lease(me, "8", renewedAt(lateRenewal)), nil)
		}, ErrSuperseded, 7},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(t)
			term := c.acquire()
			ctx, cancel := term.Context(t.Context())
			defer cancel()

			tc.happens(c)

			if err := term.Err(); !errors.Is(err, tc.wantLost) {
				t.Fatalf("the term ended with %v, want %v", err, tc.wantLost)
			}
			if got := term.Token(); got != tc.wantToken {
				t.Errorf("its token is %s, want %s", got, tc.wantToken)
			}
			if tc.wantLost == nil {
				if ctx.Err() != nil || c.Term() != term || c.ended != 0 {
					t.Errorf("the term goes on, but its context says %v", context.Cause(ctx))
				}
				return
			}
			<-ctx.Done()
			if lost := (*LostError)(nil); !errors.As(context.Cause(ctx), &lost) || lost.Token != tc.wantToken || lost.Lease != "prod/payments" {
				t.Errorf("the cause of its context is %v", context.Cause(ctx))
			}
			if c.Term() != nil || c.ended != 1 {
				t.Errorf("a term is over, but the election has %v, and was told %d times", c.Term(), c.ended)
			}
		})
	}
}

// After its term a lock sends nothing more: an elector that has not noticed must
// not acquire anew behind the back of work that still runs.
func TestLockIsSpentWithItsTerm(t *testing.T) {
	c := newCandidate(t)
	c.acquire()
	_ = c.reads(lease(other, "8"), nil)
	before := c.api.requests

	if err := c.reads(lease("", "8"), nil); !errors.Is(err, ErrSuperseded) {
		t.Errorf("a read returned %v", err)
	}
	if err := c.writes(lease(me, "9"), nil); !errors.Is(err, ErrSuperseded) {
		t.Errorf("an acquisition returned %v", err)
	}
	if c.api.requests != before || c.Term() != nil {
		t.Errorf("%d requests were sent, and the term is %v", c.api.requests-before, c.Term())
	}
}

// A term ends when its last proof is too old, whoever notices first.
func TestTermNeedsProof(t *testing.T) {
	t.Run("the timer ends it", func(t *testing.T) {
		c := newCandidate(t)
		term := c.acquire()
		c.clock.Step(DefaultRenewDeadline - time.Millisecond)
		select {
		case <-term.Done():
			t.Fatal("it ended too early")
		default:
		}
		c.clock.Step(time.Millisecond)
		<-term.Done()
		if err := term.Err(); !errors.Is(err, ErrUnproven) {
			t.Errorf("it ended with %v", err)
		}
	})
	t.Run("it runs from when the acquisition was sent, however long it took", func(t *testing.T) {
		c := newCandidate(t)
		_ = c.reads(lease(other, "1"), nil)
		c.api.takes = 4 * time.Second
		if err := c.writes(lease(me, "7"), nil); err != nil {
			t.Fatal(err)
		}
		term := c.Term()
		c.clock.Step(6 * time.Second)
		<-term.Done()
		if err := term.Err(); !errors.Is(err, ErrUnproven) {
			t.Errorf("it ended with %v", err)
		}
	})
	t.Run("a renewal moves the end, from when it was sent", func(t *testing.T) {
		c := newCandidate(t)
		term := c.acquire()
		c.clock.Step(6 * time.Second)
		if err := c.writes(lease(me, "7"), nil); err != nil {
			t.Fatal(err)
		}
		c.clock.Step(6 * time.Second)
		if err := term.Err(); err != nil {
			t.Fatalf("6 s after its renewal: %v", err)
		}
		c.clock.Step(4 * time.Second)
		if err := term.Err(); !errors.Is(err, ErrUnproven) {
			t.Errorf("10 s after its renewal it is over with %v", err)
		}
	})
	t.Run("a read is no proof", func(t *testing.T) {
		c := newCandidate(t)
		term := c.acquire()
		c.clock.Step(6 * time.Second)
		_ = c.reads(lease(me, "7"), nil)
		c.clock.Step(4 * time.Second)
		if err := term.Err(); !errors.Is(err, ErrUnproven) {
			t.Errorf("10 s after its renewal it is over with %v", err)
		}
	})
}

// A candidate that comes back while nobody took over goes on with its token.
func TestExpiredIsNotSuperseded(t *testing.T) {
	c := newCandidate(t)
	first := c.acquire()
	c.clock.Step(time.Minute)
	if err := first.Err(); !errors.Is(err, ErrUnproven) {
		t.Fatalf("after a minute it is over with %v", err)
	}
	c.lock = c.newLock(func() {})
	second := c.acquire()
	if second == first || second.Token() != 7 {
		t.Errorf("the next term has token %s", second.Token())
	}
	if err := first.Err(); !errors.Is(err, ErrUnproven) {
		t.Errorf("the first term is %v", err)
	}
}

// An acquisition counts only with a token for this candidate.
func TestNoTokenNoTerm(t *testing.T) {
	for name, answer := range map[string]*coordinationv1.Lease{
		"not fenced":               lease(me, "7", unlabelled),
		"retired":                  lease(me, "7", retired),
		"minted for another":       lease(me, "7", tokenFor(other)),
		"not canonical":            lease(me, "07"),
		"the counter was not used": lease(me, ""),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(t)
			_ = c.reads(lease(other, "1"), nil)
			if err := c.writes(answer, nil); err == nil || !strings.Contains(err.Error(), "hands out no fencing token") {
				t.Errorf("the acquisition returned %v", err)
			}
			if c.Term() != nil {
				t.Errorf("there is a term with token %s", c.Term().Token())
			}
			if err := c.writes(lease(me, "8"), nil); err != nil || c.Term() == nil {
				t.Errorf("with a token the next write should have begun a term: %v", err)
			}
		})
	}
}

// A release ends the term before it is sent.
func TestReleaseEndsTheTermFirst(t *testing.T) {
	c := newCandidate(t)
	term := c.acquire()
	c.api.answer, c.api.err = nil, errors.New("no route to host")
	if err := c.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil {
		t.Error("the release did not say that it failed")
	}
	if err := term.Err(); !errors.Is(err, ErrReleased) {
		t.Errorf("the term is %v", err)
	}
}
