package leadership

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fencedlease/fencedlease/test/suite"
)

// pause is how long the leader sleeps: longer than its Lease is good for.
const pause = 22 * time.Second

// mostAwake is how long a former leader's work may go on after it woke up. What it
// takes is a renewal at most; client-go takes up to 10 s.
const mostAwake = 2500 * time.Millisecond

// awakening is what a former leader did after it woke up.
type awakening struct {
	accepted  int           // writes that were stored after the next leader's first
	refused   int           // writes that the API server refused
	stopped   int           // writes that were stopped in the process
	cutOff    int           // writes whose answer was not waited for
	cancelled time.Duration // until the context of its work was cancelled
	cause     string        // of that
}

// TestPausedLeader: the leader sleeps for 22 s, another takes over, and the first
// wakes up. With client-go's leader election, which it names in its own package
// comment as unsafe here, and with package leader, at client-go's default timings.
func TestPausedLeader(t *testing.T) {
	t.Parallel()
	var stock, fenced awakening
	t.Run("scenes", func(t *testing.T) {
		t.Run("stock", func(t *testing.T) {
			t.Parallel()
			w := suite.New(t)
			w.Must(w.Admin.Create(w.Ctx, w.ConfigMap(account)))
			stock = pausedLeader(w, "stock")
		})
		t.Run("leader", func(t *testing.T) {
			t.Parallel()
			w := suite.New(t)
			w.FencedLease(leaseName)
			w.Must(w.Admin.Create(w.Ctx, w.ConfigMap(account, suite.GuardedBy(leaseName))))
			fenced = pausedLeader(w, "leader")
		})
	})
	if t.Failed() {
		return
	}
	t.Log(compared(stock, fenced))
	if stock.accepted == 0 || stock.refused > 0 {
		t.Error("with client-go alone late writes should have been accepted: the scene shows nothing")
	}
	if fenced.accepted > 0 {
		t.Errorf("%d late writes were accepted, want none", fenced.accepted)
	}
	if fenced.cancelled > mostAwake {
		t.Errorf("the work was cancelled after %s, want %s at most", fenced.cancelled, mostAwake)
	}
	if fenced.stopped == 0 {
		t.Error("the former leader went on, and nothing was stopped in the process")
	}
}

// pausedLeader plays the scene with workers of a kind.
func pausedLeader(w *suite.World, kind string) awakening {
	w.T.Helper()
	all := recordOf(w, corev1.SchemeGroupVersion.WithResource("configmaps"))
	began := time.Now()
	first := start(w, kind, "first")
	first.await(wrote, first.await(leads, began).at)
	second := start(w, kind, "second")
	second.await(competes, began)
	first.await(wrote, time.Now())

	asleep := time.Now()
	first.signal(syscall.SIGSTOP)
	second.await(wrote, asleep)
	// A candidate may need longer to see that the Lease expired: then the pause is
	// longer too.
	time.Sleep(time.Until(asleep.Add(pause)))
	woke := time.Now()
	first.signal(syscall.SIGCONT)

	end := first.await(cancelled, woke)
	first.await(rests, woke)
	for _, h := range first.noted(refused, woke) {
		if !strings.HasPrefix(h.more, "412 FencingTokenStale: ") {
			w.T.Errorf("a late write was refused, but not as stale: %s", h.more)
		}
	}
	// The next leader is none the worse for it.
	second.await(wrote, end.at.Add(time.Second))
	if h := second.noted(refused, asleep); len(h) > 0 {
		w.T.Errorf("writes of the new leader were refused: %v", h)
	}
	w.Must(second.process.Kill())
	return awakening{
		accepted:  late(all.complete()),
		refused:   len(first.noted(refused, woke)),
		stopped:   len(first.noted(stopped, woke)),
		cutOff:    len(first.noted(missed, woke)),
		cancelled: end.at.Sub(woke),
		cause:     end.more,
	}
}

// late counts the writes of the first leader that were stored after one of the second.
func late(revisions []revision) int {
	n, over := 0, false
	for _, r := range revisions {
		if r.GetName() != account {
			continue
		}
		switch writer := text(r.Unstructured, "data", "writer"); {
		case writer == "second":
			over = true
		case writer == "first" && over:
			n++
		}
	}
	return n
}

// compared is a table of both.
func compared(stock, fenced awakening) string {
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "the leader was paused for %s; after it woke up:\n", pause)
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	row := func(what string, value func(awakening) any) {
		_, _ = fmt.Fprintf(table, "  %s\t%v\t%v\n", what, value(stock), value(fenced))
	}
	_, _ = fmt.Fprintf(table, "  \tclient-go\tleader\n")
	row("late writes accepted", func(a awakening) any { return a.accepted })
	row("late writes refused (412)", func(a awakening) any { return a.refused })
	row("late writes stopped in the process", func(a awakening) any { return a.stopped })
	row("late writes cut off", func(a awakening) any { return a.cutOff })
	row("its work was cancelled after", func(a awakening) any { return a.cancelled.Round(time.Millisecond) })
	_ = table.Flush()
	_, _ = fmt.Fprintf(&out, "  the cause that leader gives: %s", fenced.cause)
	return out.String()
}
