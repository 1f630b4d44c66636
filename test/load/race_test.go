package load

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

const (
	raceWrites   = 20_000 // attempts, by all writers together
	raceWriters  = 8
	writesOfTerm = 100 // attempts until the Lease is acquired again

	// Less than this would prove little.
	raceEnough = 1000
)

// TestStaleWriteRace: many write one guarded object at once, half of them with
// tokens of terms that are over, while the Lease changes hands. What was
// committed is what the guarantees S1 to S3 allow, revision by revision.
func TestStaleWriteRace(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	r := &race{w: w, began: time.Now()}
	first := newRaceWriter(r, 0)
	r.announce(first.Acquire("payments", first.Name))
	ledger := w.Guarded("ledger", "payments", 1)
	admin, err := kubernetes.NewForConfig(w.Admin.Config)
	w.Must(err)
	var seen history[*corev1.ConfigMap]
	seen.record(w, admin.CoreV1().ConfigMaps(w.Namespace), ledger)

	writers := []*raceWriter{first}
	for i := uint64(1); i < raceWriters; i++ {
		writers = append(writers, newRaceWriter(r, i))
	}
	var running sync.WaitGroup
	for _, writer := range writers {
		running.Go(writer.run)
	}
	running.Wait()

	r.checkHistory(seen.until(w, w.GetConfigMap("ledger")), writers)
	r.checkCounts(writers)
	if got := suite.Keys(w.Lease("payments")).CurrentToken(); int64(got) != r.minted.Load() {
		t.Errorf("the Lease has token %s after %d acquisitions", got, r.minted.Load())
	}
}

// race is what the writers share.
type race struct {
	w         *suite.World
	began     time.Time
	attempts  atomic.Int64
	minted    atomic.Int64 // the newest token that anybody was given
	announced atomic.Int64 // the newest whose holder has sealed the object
}

// announce tells all writers of a token that they may present from now on.
func (r *race) announce(token fence.Token) {
	raise(&r.minted, token)
	raise(&r.announced, token)
}

func raise(to *atomic.Int64, token fence.Token) {
	for {
		old := to.Load()
		if old >= int64(token) || to.CompareAndSwap(old, int64(token)) {
			return
		}
	}
}

// checkHistory goes through all that was committed: every write of which a
// writer was told that it was admitted, and no other; marks that never fall; and
// for each write its writer's claim as the mark.
func (r *race) checkHistory(revisions []*corev1.ConfigMap, writers []*raceWriter) {
	r.w.T.Helper()
	admitted := map[string]admittedWrite{}
	for _, writer := range writers {
		for _, write := range writer.admitted {
			if again, twice := admitted[write.revision]; twice {
				r.w.T.Errorf("revision %s is of write %s and of %s", write.revision, again.id, write.id)
			}
			admitted[write.revision] = write
		}
	}
	if len(revisions) != len(admitted) {
		r.w.T.Errorf("%d revisions were committed, but %d writes admitted", len(revisions), len(admitted))
	}

	broken, mark, rises := 0, fence.Token(1), 0
	wrong := func(cm *corev1.ConfigMap, why string, write admittedWrite) {
		if broken++; broken <= 10 {
			r.w.T.Errorf("revision %s: %s: mark %s after %s, data %v, write %+v", cm.ResourceVersion, why, stored(cm), mark, cm.Data, write)
		}
	}
	for _, cm := range revisions {
		write, known := admitted[cm.ResourceVersion]
		now := stored(cm)
		switch {
		case !known:
			wrong(cm, "nobody was told that it was admitted", write)
		case now < mark:
			wrong(cm, "the mark fell", write)
		case write.claim != now:
			wrong(cm, "the claim is not the mark", write)
		case write.claim < write.minted:
			wrong(cm, "the claim was stale before it was sent", write)
		case !write.seal && (cm.Data["claim"] != now.String() || cm.Data["write"] != write.id):
			wrong(cm, "the data are not the write's", write)
		}
		if now > mark {
			rises++
		}
		mark = max(mark, now)
	}
	r.w.T.Logf("the history has %d revisions; the mark rose %d times, to %s; %d revisions are wrong", len(revisions), rises, mark, broken)
}

// checkCounts prints what was answered, and checks that there was a race.
func (r *race) checkCounts(writers []*raceWriter) {
	r.w.T.Helper()
	total := map[string]int{}
	table := map[string]map[string]int{}
	terms, staleRefused := 0, 0
	for _, writer := range writers {
		terms += writer.terms
		staleRefused += writer.staleRefused
		for key, n := range writer.answers {
			total[key.answer] += n
			if table[key.how] == nil {
				table[key.how] = map[string]int{}
			}
			table[key.how][key.answer] += n
		}
		for _, err := range writer.unexpected {
			r.w.T.Errorf("%s: %v", writer.Name, err)
		}
	}
	r.w.T.Logf("%-16s %9s %6s %6s %6s %6s %6s", "", answerAdmitted, answerStale, answerRequired, answerNeverIssued, answerConflict, answerOther)
	row := func(name string, n map[string]int) {
		r.w.T.Logf("%-16s %9d %6d %6d %6d %6d %6d", name, n[answerAdmitted], n[answerStale], n[answerRequired], n[answerNeverIssued],
			n[answerConflict], n[answerOther])
	}
	for _, how := range slices.Sorted(maps.Keys(table)) {
		row(how, table[how])
	}
	row("all", total)
	r.w.T.Logf("%d further terms; %d of the writes refused with 412 had a token that was stale before they were sent; all took %s",
		terms, staleRefused, time.Since(r.began).Round(time.Second))
	sum := 0
	for _, n := range total {
		sum += n
	}
	if sum != raceWrites {
		r.w.T.Errorf("%d writes were attempted, want %d", sum, raceWrites)
	}
	if total[answerOther] != 0 {
		r.w.T.Errorf("%d answers are of no kind that there should be", total[answerOther])
	}
	if staleRefused < raceEnough || total[answerAdmitted] < raceEnough {
		r.w.T.Errorf("that was no race: want at least %d stale writes refused and %d others admitted", raceEnough, raceEnough)
	}
	for _, answer := range []string{answerRequired, answerNeverIssued, answerConflict} {
		if total[answer] == 0 {
			r.w.T.Errorf("no write was answered with %s", answer)
		}
	}
}

// stored is the mark of an object.
func stored(cm *corev1.ConfigMap) fence.Token {
	token, _ := fence.ParseToken(cm.Annotations[v1alpha1.AnnotationToken])
	return token
}
