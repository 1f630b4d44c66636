package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// raceWriter writes one thing after the other, each in a way that it draws. Now
// and then it leads.
type raceWriter struct {
	*suite.Actor

	carrier  *suite.Actor // the same Pod; the claim is in the user extra
	race     *race
	rand     *rand.Rand
	lastRead *corev1.ConfigMap
	own      fence.Token // of its last term; None if it never led

	terms        int
	staleRefused int
	admitted     []admittedWrite
	answers      map[answer]int
	unexpected   []error
}

// admittedWrite is a write of which the writer was told that it was committed.
type admittedWrite struct {
	id       string
	revision string
	claim    fence.Token
	minted   fence.Token // the newest token known when it was sent
	seal     bool
}

type answer struct{ how, answer string }

// The answers that there may be.
const (
	answerAdmitted    = "admitted"
	answerStale       = "412"
	answerRequired    = "428"
	answerNeverIssued = "403"
	answerConflict    = "409"
	answerOther       = "other"
)

// attempt is one write: with a claim, or with one that it only inherits.
type attempt struct {
	id    string
	claim fence.Token
}

func newRaceWriter(r *race, number uint64) *raceWriter {
	r.w.T.Helper()
	name := fmt.Sprintf("writer-%d", number)
	// It impersonates itself, with no further extra.
	w := &raceWriter{
		Actor:   r.w.PodWithExtra(name, nil),
		race:    r,
		rand:    rand.New(rand.NewPCG(1, number)),
		answers: map[answer]int{},
	}
	config := rest.CopyConfig(w.WithClaim("1").Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return claimOfContext{next} })
	w.carrier = r.w.Actor(name, config)
	return w
}

// run writes until all attempts are made.
func (w *raceWriter) run() {
	for {
		n := w.race.attempts.Add(1)
		if n > raceWrites || w.race.w.Ctx.Err() != nil {
			return
		}
		if n%writesOfTerm == 0 {
			w.lead()
		}
		if n%(raceWrites/10) == 0 {
			w.race.w.T.Logf("write %d of %d, under token %d", n, raceWrites, w.race.announced.Load())
		}
		w.attempt(strconv.FormatInt(n, 10))
	}
}

// attempt writes once, with a current or a stale token.
func (w *raceWriter) attempt(id string) {
	minted, claim := fence.Token(w.race.minted.Load()), fence.Token(w.race.announced.Load())
	if w.rand.IntN(2) == 0 && claim > 1 {
		claim -= fence.Token(1 + w.rand.Int64N(min(20, int64(claim)-1)))
	}
	how := w.draw()
	got, claim, err := how.write(w, attempt{id, claim})
	result := answerOf(err)
	w.answers[answer{how.name, result}]++
	switch result {
	case answerAdmitted:
		w.admitted = append(w.admitted, admittedWrite{id: id, revision: got.ResourceVersion, claim: claim, minted: minted})
	case answerStale:
		if claim < minted {
			w.staleRefused++
		}
	case answerOther:
		w.fail(err)
	}
}

func (w *raceWriter) draw() manner {
	sum := 0
	for _, m := range manners {
		sum += m.weight
	}
	n := w.rand.IntN(sum)
	for _, m := range manners {
		if n -= m.weight; n < 0 {
			return m
		}
	}
	panic("unreachable")
}

// lead acquires the Lease and seals the object. Nobody else has its token before.
func (w *raceWriter) lead() {
	lease, err := w.TryAcquire("payments", w.Name)
	for apierrors.IsConflict(err) {
		lease, err = w.TryAcquire("payments", w.Name)
	}
	if err != nil {
		w.fail(err)
		return
	}
	w.own = suite.Keys(lease).CurrentToken()
	w.terms++
	raise(&w.race.minted, w.own)
	for {
		minted := fence.Token(w.race.minted.Load())
		sealed, err := w.mergePatch(w.race.w.Ctx, w.Actor, map[string]any{"metadata": annotations(tokenOnly(w.own))})
		switch result := answerOf(err); {
		case result == answerAdmitted:
			w.admitted = append(w.admitted, admittedWrite{revision: sealed.ResourceVersion, claim: w.own, minted: minted, seal: true})
			w.race.announce(w.own)
			return
		case result == answerStale && w.own < fence.Token(w.race.minted.Load()): // overtaken
			return
		case result != answerConflict:
			w.fail(fmt.Errorf("seal: %w", err))
			return
		}
	}
}

func (w *raceWriter) fail(err error) {
	if w.race.w.Ctx.Err() == nil || len(w.unexpected) == 0 {
		w.unexpected = append(w.unexpected, err)
	}
}

// answerOf names an answer; those with a code of ours must have its reason too.
func answerOf(err error) string {
	if err == nil {
		return answerAdmitted
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return answerOther
	}
	type codeAndReason struct {
		code   int32
		reason metav1.StatusReason
	}
	switch (codeAndReason{status.Status().Code, status.Status().Reason}) {
	case codeAndReason{412, metav1.StatusReason(fence.ReasonStale)}:
		return answerStale
	case codeAndReason{428, metav1.StatusReason(fence.ReasonRequired)}:
		return answerRequired
	case codeAndReason{403, metav1.StatusReason(fence.ReasonNeverIssued)}:
		return answerNeverIssued
	case codeAndReason{409, metav1.StatusReasonConflict}:
		return answerConflict
	default:
		return answerOther
	}
}
