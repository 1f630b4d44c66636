package scripts

import (
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// forking is a script that does all it can to stay, and to go on writing: its
// children reach the API server by another way, which no outage cuts off. `state` is
// guarded. `free` is not: there, only the end of the writers ends their writes.
const forking = `#!/bin/sh
trap '' TERM HUP INT
cat >writer.sh <<'EOF'
trap '' TERM HUP INT
while :; do
	kubectl --server="$DIRECT" patch configmap "$1" -p "data: {writer: '$2', at: '$(date +%s%N)'}" >>"$2.log" 2>&1
	sleep 0.3
done
EOF
sh writer.sh state child &
setsid sh writer.sh free session &
(setsid sh -c 'sh writer.sh free daemon & exec sleep 1000' &) &
echo started
n=0
while [ "$n" -lt "${WRITES:-1000000}" ]; do
	n=$((n+1))
	kubectl --server="$DIRECT" patch configmap state -p "data: {writer: main, at: '$n'}" >>main.log 2>&1
	sleep 0.2
done
exit 7
`

// observed is one state of a ConfigMap.
type observed struct {
	name, writer string
	mark         fence.Token
}

// observer watches the ConfigMaps of the test's namespace.
type observer struct {
	mu     sync.Mutex
	states []observed
}

func observe(w *suite.World) *observer {
	w.T.Helper()
	scheme := runtime.NewScheme()
	w.Must(clientgoscheme.AddToScheme(scheme))
	c, err := client.NewWithWatch(suite.Cluster.Admin, client.Options{Scheme: scheme})
	w.Must(err)
	events, err := c.Watch(w.Ctx, &corev1.ConfigMapList{}, client.InNamespace(w.Namespace))
	w.Must(err)
	w.T.Cleanup(events.Stop)
	o := &observer{}
	go func() {
		for event := range events.ResultChan() {
			cm, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				continue
			}
			mark, _ := fence.ParseToken(cm.Annotations[v1alpha1.AnnotationToken]) // none for none
			o.mu.Lock()
			o.states = append(o.states, observed{cm.Name, cm.Data["writer"], mark})
			o.mu.Unlock()
		}
	}()
	return o
}

// seen are the states of a ConfigMap, in their order.
func (o *observer) seen(name string) []observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	var states []observed
	for _, s := range o.states {
		if s.name == name {
			states = append(states, s)
		}
	}
	return states
}

// wrote says whether a writer has written a ConfigMap.
func (o *observer) wrote(name, writer string) bool {
	for _, s := range o.seen(name) {
		if s.writer == writer {
			return true
		}
	}
	return false
}

// awaitWriters waits until all of a script's processes have written.
func (o *observer) awaitWriters(w *suite.World) {
	w.T.Helper()
	w.Eventually("all write", func() error {
		for _, writer := range []string{"state main", "state child", "free session", "free daemon"} {
			name, writer, _ := strings.Cut(writer, " ")
			if !o.wrote(name, writer) {
				return errNotYet
			}
		}
		return nil
	})
}

// TestOutage: the API server is away for longer than the lease, and somebody else
// takes over, who does reach it. By then no process of the command is left, and no
// write of it comes late, however it runs away from us.
func TestOutage(t *testing.T) {
	t.Run("cut", func(t *testing.T) { outage(t, (*suite.Way).Cut) })
	t.Run("silent", func(t *testing.T) { outage(t, (*suite.Way).Silence) })
}

func outage(t *testing.T, begin func(*suite.Way)) {
	w, direct := story(t)
	pod, err := suite.Cluster.PodConfig(w.Ctx, w.Namespace, "impersonator", "worker")
	w.Must(err)
	way := w.Way()
	worker := newHost(w, way.Of(pod))
	worker.file("job.sh", forking)
	o := observe(w)

	first := worker.run("--identity=first", "--", "./job.sh")
	first.prints("started")
	o.awaitWriters(w)
	running := first.children()
	if len(running) < 6 {
		t.Fatalf("%d processes, and there should be at least 6", len(running))
	}
	second := direct.sh(`echo "started with $FENCING_TOKEN"
		kubectl patch configmap state -p "data: {writer: second}"
		kubectl patch configmap free -p "data: {writer: second}"
		sleep 3`, "--identity=second", "--seal=configmap/state")
	second.says(`"first" has held it`)

	begin(way)
	cut := time.Now()
	gone := first.waitGone()
	second.prints("started with 2")
	taken := time.Since(cut)
	if left := first.children(); len(left) > 0 {
		t.Errorf("%d processes of the first run are there while the second works: %v", len(left), left)
	}
	first.exits(76, "the command was killed: the term with token 1", "the Lease could not be renewed in time")
	second.exits(0, "waiting")
	t.Logf("the API server away, the command and its %d processes were gone after %s, the next holder started after %s",
		len(running), gone.Round(time.Millisecond), taken.Round(time.Millisecond))

	last := fence.None
	for _, s := range o.seen("state") {
		if s.mark < last {
			t.Errorf("the mark of state fell from %s to %s", last, s.mark)
		}
		last = s.mark
	}
	for _, name := range []string{"state", "free"} {
		over := false // the first term
		for _, s := range o.seen(name) {
			over = over || s.mark == 2 || s.writer == "second"
			if over && s.writer != "second" && (name == "free" || s.mark != 2) {
				t.Errorf("%s: %s wrote after the second term had begun", name, s.writer)
			}
		}
		if !o.wrote(name, "second") {
			t.Errorf("%s: the second holder wrote nothing", name)
		}
		if states := o.seen(name); states[len(states)-1].writer != "second" {
			t.Errorf("%s: the last writer is %s", name, states[len(states)-1].writer)
		}
	}
}

// TestNoOutage is its twin: the same script ends by itself, with its own status.
func TestNoOutage(t *testing.T) {
	w, ann := story(t)
	ann = ann.with("WRITES=12")
	ann.file("job.sh", forking)
	o := observe(w)
	run := ann.run("--", "./job.sh")
	run.exits(7)
	o.awaitWriters(w)
	released(w)
	if mark := w.GetConfigMap("state").Annotations[v1alpha1.AnnotationToken]; mark != "1" {
		t.Errorf("the mark of state is %q", mark)
	}
}
