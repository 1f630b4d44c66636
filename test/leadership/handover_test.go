package leadership

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

const (
	forced = 20 // hand-overs

	// writesPerTerm is how many writes a term has before the next is forced.
	writesPerTerm = 60

	// leastRate is how many writes a second the workers must reach while one of
	// them leads: half of what they try, for a machine that is busy.
	leastRate = 25
)

// TestHandOvers: two replicas of a controller-runtime manager write in every way that
// there is, and lose the Lease in every way that there is. No write of a term that
// is over is stored, and none of a term that lives is refused.
func TestHandOvers(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	serveLedgers(w)
	w.FencedLease(leaseName)
	for _, name := range []string{"updated", "merged", "applied", "patched"} {
		w.Must(w.Admin.Create(w.Ctx, w.ConfigMap(name, suite.GuardedBy(leaseName))))
	}
	for _, name := range []string{"updated", "reported", "report-patched"} {
		w.Must(w.Admin.Create(w.Ctx, newLedger(w.Namespace, name, suite.GuardedBy(leaseName))))
	}
	history := map[string]*record{
		"configmaps": recordOf(w, corev1.SchemeGroupVersion.WithResource("configmaps")),
		"ledgers":    recordOf(w, ledgers),
		"leases":     recordOf(w, coordinationv1.SchemeGroupVersion.WithResource("leases")),
	}

	replicas := deploy(w, "a", "b")
	began := time.Now()
	ways := []handOver{
		{"paused (SIGSTOP)", replicas.pause},
		{"killed (SIGKILL)", replicas.kill},
		{"the Lease released by an administrator", replicas.release},
		{"the Lease given to somebody who is away", replicas.giveAway},
	}
	without := map[string][]time.Duration{}
	for i := range forced {
		way := ways[i%len(ways)]
		without[way.name] = append(without[way.name], way.force(replicas.settled()))
	}
	replicas.settled()
	took := time.Since(began)
	replicas.stop()

	terms := termsOf(w, history["leases"].complete())
	for _, resource := range []string{"configmaps", "ledgers"} {
		marksNeverFall(w, history[resource].complete(), terms)
	}
	replicas.deletionsInTerm(history["configmaps"].complete())
	figures := replicas.figures()
	t.Log(figures.table(took, without, len(terms)))
	figures.check(t, took, without)
	if len(terms) < forced {
		t.Errorf("%d terms, want %d at least", len(terms), forced)
	}
	w.AwaitToken(leaseName, slices.Max(slices.Collect(maps.Keys(terms))))
}

// termsOf are the holders to which tokens were minted, by token.
func termsOf(w *suite.World, revisions []revision) map[fence.Token]string {
	w.T.Helper()
	terms := map[fence.Token]string{}
	for _, r := range revisions {
		token, err := fence.ParseToken(text(r.Unstructured, "metadata", "annotations", "fencedlease.io/token"))
		holder := text(r.Unstructured, "metadata", "annotations", "fencedlease.io/token-for")
		if err != nil || holder == "" {
			continue
		}
		if terms[token] != "" && terms[token] != holder {
			w.T.Errorf("token %s was minted for %s and for %s", token, terms[token], holder)
		}
		terms[token] = holder
	}
	return terms
}

// marksNeverFall checks that every revision of an object has a mark that is no
// smaller than the one before, and that what was written was decided in the very
// term that the mark names: nothing stale was stored.
func marksNeverFall(w *suite.World, revisions []revision, terms map[fence.Token]string) {
	w.T.Helper()
	type state struct {
		mark    fence.Token
		content string
	}
	before := map[string]state{}
	for _, r := range revisions {
		id := string(r.GetUID())
		if r.GetLabels()["fencedlease.io/guarded-by"] == "" {
			continue // that of the cluster's certificate, for instance
		}
		mark := fence.None
		if annotation := r.GetAnnotations()["fencedlease.io/token"]; annotation != "" {
			var err error
			mark, err = fence.ParseToken(annotation)
			w.Must(err)
		}
		content := map[string]string{}
		for _, field := range []string{"data", "spec", "status"} {
			for _, key := range []string{"writer", "token", "n"} {
				if value := text(r.Unstructured, field, key); value != "" {
					content[key] = value
				}
			}
		}
		now := state{mark, fmt.Sprint(content)}
		what := fmt.Sprintf("%s %s at revision %s", r.GetKind(), r.GetName(), r.GetResourceVersion())
		if mark < before[id].mark {
			w.T.Errorf("%s: the mark fell from %s to %s", what, before[id].mark, mark)
		}
		if now.content != before[id].content && len(content) > 0 &&
			(content["token"] != mark.String() || content["writer"] != terms[mark]) {
			w.T.Errorf("%s: mark %s, which is %s's, on what %s decided with token %s",
				what, mark, terms[mark], content["writer"], content["token"])
		}
		before[id] = now
	}
}

// handOver is a way to end a term.
type handOver struct {
	name string

	// force ends the leader's term, and returns how long nobody led.
	force func(leader *replica) time.Duration
}

// deployment are replicas that are started again when they end.
type deployment struct {
	w        *suite.World
	replicas []*replica
	running  sync.WaitGroup
}

// replica is a worker, and another when that has ended, each in a new Pod.
type replica struct {
	deployment *deployment

	mu   sync.Mutex
	all  []*actor // the last one runs
	done bool
}

func deploy(w *suite.World, names ...string) *deployment {
	w.T.Helper()
	d := &deployment{w: w}
	for _, name := range names {
		r := &replica{deployment: d}
		d.replicas = append(d.replicas, r)
		d.running.Go(func() { r.run(name) })
	}
	w.T.Cleanup(func() {
		for _, r := range d.replicas {
			r.end(func(a *actor) error { return a.process.Kill() })
		}
		d.running.Wait()
	})
	return d
}

// run keeps the replica running.
func (r *replica) run(name string) {
	w := r.deployment.w
	for n := 1; ; n++ {
		r.mu.Lock()
		if r.done {
			r.mu.Unlock()
			return
		}
		a, err := tryStart(w, "manager", fmt.Sprintf("%s-%d", name, n))
		if err != nil {
			r.mu.Unlock()
			w.T.Errorf("start %s: %v", name, err)
			return
		}
		r.all = append(r.all, a)
		r.mu.Unlock()
		<-a.process.Done()
	}
}

// end ends the replica for good.
func (r *replica) end(how func(*actor) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = true
	if len(r.all) == 0 {
		return
	}
	if err := how(r.all[len(r.all)-1]); err != nil {
		r.deployment.w.T.Errorf("end: %v", err)
	}
}

// now is the worker that runs, nil at the very beginning.
func (r *replica) now() *actor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return nil
	}
	return r.all[len(r.all)-1]
}

// stop ends all replicas in good order.
func (d *deployment) stop() {
	d.w.T.Helper()
	for _, r := range d.replicas {
		r.end(func(a *actor) error { return a.process.Stop(20 * time.Second) })
	}
	d.running.Wait()
}

// actors are all workers that ever ran.
func (d *deployment) actors() []*actor {
	var all []*actor
	for _, r := range d.replicas {
		r.mu.Lock()
		all = append(all, r.all...)
		r.mu.Unlock()
	}
	return all
}

// settled waits until one replica leads and has written enough, and the other
// stands by. It returns the one that leads.
func (d *deployment) settled() *replica {
	d.w.T.Helper()
	var leading *replica
	d.w.Eventually("a replica leads and another stands by", func() error {
		leading = nil
		lease := d.w.Lease(leaseName)
		for _, r := range d.replicas {
			a := r.now()
			if a == nil {
				return errors.New("a replica has not started")
			}
			diary, err := a.diary()
			d.w.Must(err)
			if len(of(diary, competes, time.Time{})) == 0 {
				return fmt.Errorf("%s does not compete yet", a.name)
			}
			if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == a.name &&
				len(of(diary, wrote, time.Time{})) >= writesPerTerm && len(of(diary, cancelled, time.Time{})) == 0 {
				leading = r
			}
		}
		if leading == nil {
			return fmt.Errorf("nobody leads; the holder is %v", lease.Spec.HolderIdentity)
		}
		return nil
	})
	return leading
}

// nextLead is when the first worker began to lead since a moment.
func (d *deployment) nextLead(since time.Time) time.Time {
	d.w.T.Helper()
	var first time.Time
	d.w.Eventually("another term begins", func() error {
		for _, a := range d.actors() {
			if found := a.noted(leads, since); len(found) > 0 {
				first = found[0].at
				return nil
			}
		}
		return fmt.Errorf("the holder is %v", d.w.Lease(leaseName).Spec.HolderIdentity)
	})
	return first
}

// pause stops the leader until another leads and has written, and lets it run on.
func (d *deployment) pause(leading *replica) time.Duration {
	d.w.T.Helper()
	a := leading.now()
	at := time.Now()
	a.signal(syscall.SIGSTOP)
	next := d.nextLead(at)
	d.w.Eventually("the next leader writes", func() error {
		for _, other := range d.actors() {
			if len(other.noted(wrote, next)) > writesPerTerm/10 {
				return nil
			}
		}
		return errors.New("it has not")
	})
	a.signal(syscall.SIGCONT)
	return next.Sub(at)
}

// kill kills the leader.
func (d *deployment) kill(leading *replica) time.Duration {
	d.w.T.Helper()
	at := time.Now()
	d.w.Must(leading.now().process.Kill())
	return d.nextLead(at).Sub(at)
}

// release takes the Lease from the leader.
func (d *deployment) release(*replica) time.Duration {
	d.w.T.Helper()
	at := time.Now()
	d.w.Admin.Release(leaseName)
	return d.nextLead(at).Sub(at)
}

// giveAway gives the Lease to somebody who never renews it.
func (d *deployment) giveAway(*replica) time.Duration {
	d.w.T.Helper()
	at := time.Now()
	_, err := d.w.Admin.WriteLease(leaseName, func(lease *coordinationv1.Lease) {
		suite.Take(lease, "maintenance")
		*lease.Spec.LeaseDurationSeconds = int32(shortLease / time.Second)
	})
	d.w.Must(err)
	return d.nextLead(at).Sub(at)
}

// deletionsInTerm checks that nobody deleted what a newer term had written.
func (d *deployment) deletionsInTerm(revisions []revision) {
	d.w.T.Helper()
	marks := map[string]string{} // by uid, as the object was deleted
	for _, r := range revisions {
		if r.event == "DELETED" {
			marks[string(r.GetUID())] = r.GetAnnotations()["fencedlease.io/token"]
		}
	}
	if len(marks) == 0 {
		d.w.T.Error("nothing was deleted")
	}
	for _, a := range d.actors() {
		for _, h := range a.noted(deleted, time.Time{}) {
			token, uid, _ := strings.Cut(h.more, " ")
			mark, err := fence.ParseToken(marks[uid])
			own, _ := fence.ParseToken(token)
			if err != nil || mark > own {
				d.w.T.Errorf("%s deleted, with token %s, an object with mark %q", a.name, token, marks[uid])
			}
		}
	}
}

// figures are what the workers noted.
type figures struct {
	wrote, refused, stopped, missed map[string]int // by verb
	wrong                           []string       // refusals that should not be
	replicas                        map[string]int // writes by replica
}

func (d *deployment) figures() figures {
	d.w.T.Helper()
	f := figures{map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, nil, map[string]int{}}
	for _, a := range d.actors() {
		diary, err := a.diary()
		d.w.Must(err)
		for _, h := range diary {
			token, rest, _ := strings.Cut(h.more, " ")
			name, more, _ := strings.Cut(rest, ": ")
			switch h.what {
			case wrote:
				f.wrote[name]++
				replica, _, _ := strings.Cut(a.name, "-")
				f.replicas[replica]++
			case refused:
				f.refused[name]++
				if !isStale(more, token) {
					f.wrong = append(f.wrong, fmt.Sprintf("%s, token %s, %s: %s", a.name, token, name, more))
				}
			case stopped:
				f.stopped[name]++
			case missed:
				f.missed[name]++
			}
		}
	}
	return f
}

// isStale says whether a refusal is one that a stale write deserves: it names a newer
// token. A write that leaves a token as it is, or deletes the object, presents none
// that could be stale: its writer does not hold the newest.
func isStale(refusal, token string) bool {
	own, _ := fence.ParseToken(token)
	for field := range strings.FieldsSeq(refusal) {
		if value, ok := strings.CutPrefix(field, "current="); ok {
			current, err := fence.ParseToken(value)
			return err == nil && current > own &&
				(strings.HasPrefix(refusal, "412 FencingTokenStale ") || strings.HasPrefix(refusal, "428 FencingTokenRequired presented=none "))
		}
	}
	return false
}

func (f figures) leading(took time.Duration, without map[string][]time.Duration) time.Duration {
	for _, gaps := range without {
		for _, gap := range gaps {
			took -= gap
		}
	}
	return took
}

func (f figures) rate(took time.Duration, without map[string][]time.Duration) float64 {
	return float64(sum(f.wrote)) / f.leading(took, without).Seconds()
}

func (f figures) check(t *testing.T, took time.Duration, without map[string][]time.Duration) {
	t.Helper()
	for _, wrong := range f.wrong {
		t.Errorf("a write was refused that is not stale: %s", wrong)
	}
	for _, v := range verbs {
		if f.wrote[v.name] == 0 {
			t.Errorf("no %s was accepted", v.name)
		}
	}
	if len(f.replicas) != 2 {
		t.Errorf("these replicas wrote: %v; want both", f.replicas)
	}
	if rate := f.rate(took, without); rate < leastRate {
		t.Errorf("%.1f writes a second, want %d at least", rate, leastRate)
	}
	if sum(f.stopped) == 0 {
		t.Error("no write was stopped in the process")
	}
}

// table is what was counted.
func (f figures) table(took time.Duration, without map[string][]time.Duration, terms int) string {
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "%d hand-overs forced, %d terms, in %s; %.1f writes a second while somebody led\n",
		forced, terms, took.Round(time.Second), f.rate(took, without))
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "  \taccepted\tstale, refused\tstopped in the process\tconflicts and the like")
	for _, v := range verbs {
		_, _ = fmt.Fprintf(table, "  %s\t%d\t%d\t%d\t%d\n", v.name, f.wrote[v.name], f.refused[v.name], f.stopped[v.name], f.missed[v.name])
	}
	_, _ = fmt.Fprintf(table, "  all\t%d\t%d\t%d\t%d\n", sum(f.wrote), sum(f.refused), sum(f.stopped), sum(f.missed))
	_ = table.Flush()
	for _, way := range slices.Sorted(maps.Keys(without)) {
		gaps := without[way]
		_, _ = fmt.Fprintf(&out, "  without a leader, %s: %s to %s\n", way,
			slices.Min(gaps).Round(10*time.Millisecond), slices.Max(gaps).Round(10*time.Millisecond))
	}
	return out.String()
}

func sum(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}
