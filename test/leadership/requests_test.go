package leadership

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/test/suite"
)

// renewals is how often a leader renews its Lease before it releases it.
const renewals = 4

// requests are those that leave a process, each as method and path.
type requests struct {
	mu  sync.Mutex
	all []string

	// after, if set, is called after each answer with how many there were of that kind.
	after func(request string, n int)
}

// counted is a config whose requests are counted.
func (r *requests) counted(config *rest.Config) *rest.Config {
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transportFunc(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			line := req.Method + " " + req.URL.Path
			r.mu.Lock()
			r.all = append(r.all, line)
			n := 0
			for _, other := range r.all {
				if other == line {
					n++
				}
			}
			r.mu.Unlock()
			if r.after != nil {
				r.after(line, n)
			}
			return resp, err
		})
	})
	return counted
}

func (r *requests) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// contender competes for a Lease until ctx ends; led is called when its work begins.
type contender func(ctx context.Context, w *suite.World, config *rest.Config, identity string, led func(fence.Token))

// elect runs a stock elector with a lock.
func elect(ctx context.Context, w *suite.World, lock resourcelock.Interface, led func()) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   leader.DefaultLeaseDuration,
		RenewDeadline:   leader.DefaultRenewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led() },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		w.T.Error(err)
		return
	}
	elector.Run(ctx)
}

// contenders are client-go's own, and ours.
var contenders = map[string]contender{
	"client-go": func(ctx context.Context, w *suite.World, config *rest.Config, identity string, led func(fence.Token)) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			w.T.Error(err)
			return
		}
		elect(ctx, w, &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: w.Namespace, Name: leaseName},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}, func() { led(fence.None) })
	},
	"Election.Lock": func(ctx context.Context, w *suite.World, config *rest.Config, identity string, led func(fence.Token)) {
		election, err := leader.New(config, leader.Options{Namespace: w.Namespace, Name: leaseName, Identity: identity, RetryPeriod: retryPeriod})
		if err != nil {
			w.T.Error(err)
			return
		}
		elect(ctx, w, election.Lock(), func() { led(election.Term().Token()) })
	},
	"Election.Run": func(ctx context.Context, w *suite.World, config *rest.Config, identity string, led func(fence.Token)) {
		election, err := leader.New(config, leader.Options{Namespace: w.Namespace, Name: leaseName, Identity: identity, RetryPeriod: retryPeriod})
		if err != nil {
			w.T.Error(err)
			return
		}
		err = election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
			led(term.Token())
			<-ctx.Done()
			return nil
		})
		if err != nil {
			w.T.Error(err)
		}
	},
}

// TestAcquiringCostsNoMoreRequests: from the first request to the release, a fenced
// candidate sends what client-go's own does, one for one; the token comes with it.
func TestAcquiringCostsNoMoreRequests(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	lists := map[string][]string{}
	t.Run("contenders", func(t *testing.T) {
		for name, contend := range contenders {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := fenced(t)
				w.Eventually("the Lease exists", func() error { return w.Admin.Get(w.Ctx, w.Key(leaseName), w.Lease(leaseName)) })
				list := held(w, contend)
				mu.Lock()
				defer mu.Unlock()
				lists[name] = list
			})
		}
	})
	if t.Failed() {
		return
	}
	want := lists["client-go"]
	t.Logf("from the start to the release, with %d renewals: %s", renewals, strings.Join(want, ", "))
	if len(want) != 1+1+renewals+2 {
		t.Errorf("client-go sent %d requests, which is not what this test counts on", len(want))
	}
	for name, got := range lists {
		if !slices.Equal(got, want) {
			t.Errorf("%s sent\n%s\nand client-go\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// held lets a contender lead for some renewals, and returns what it sent, with the
// namespace left out.
func held(w *suite.World, contend contender) []string {
	w.T.Helper()
	pod := w.Pod("first")
	ctx, stop := context.WithCancel(klog.NewContext(w.Ctx, logr.Discard()))
	defer stop()
	sent := &requests{}
	sent.after = func(request string, n int) {
		if strings.HasPrefix(request, http.MethodPut) && n == 1+renewals {
			stop()
		}
	}
	var mu sync.Mutex
	var tokens []fence.Token
	contend(ctx, w, sent.counted(pod.Config), "first", func(token fence.Token) {
		mu.Lock()
		defer mu.Unlock()
		tokens = append(tokens, token)
	})
	keys := suite.Keys(w.Lease(leaseName))
	mu.Lock()
	defer mu.Unlock()
	if keys.CurrentToken() != 1 || keys.TokenFor != "first" {
		w.T.Errorf("the Lease has %+v", keys)
	}
	if len(tokens) != 1 || tokens[0] != fence.None && tokens[0] != keys.CurrentToken() {
		w.T.Errorf("work began with %v, and the Lease has %s", tokens, keys.Token)
	}
	released(w)
	return withoutNamespace(w, sent.list())
}

func withoutNamespace(w *suite.World, list []string) []string {
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], w.Namespace, "NAMESPACE")
	}
	return list
}

// TestCreatingTheLease: a candidate that finds no Lease creates it, as client-go's
// own does. While no FencedLease wraps it, it reads and renews the Lease; it leads
// with the first renewal after one does.
func TestCreatingTheLease(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	sent := &requests{}
	first := stand(w, &suite.Actor{Config: sent.counted(w.Pod("first").Config), Name: "first"})
	first.waits()
	w.FencedLease(leaseName)
	first.lead(1)
	list := withoutNamespace(w, sent.list())
	if want := []string{"GET " + leasePath, "POST " + strings.TrimSuffix(leasePath, "/"+leaseName)}; !slices.Equal(list[:2], want) {
		t.Errorf("it began with %v, want %v", list[:2], want)
	}
	for _, request := range list[2:] {
		if request != "GET "+leasePath && request != "PUT "+leasePath {
			t.Errorf("while it waited it sent %s", request)
		}
	}
}

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases/" + leaseName

// TestSealingCosts: a read and a write for each object that is named; for those that
// are selected one read of all, and a write each; no write for those that have the
// token.
func TestSealingCosts(t *testing.T) {
	t.Parallel()
	w := fenced(t)
	for _, name := range []string{"a", "b", "c"} {
		guarded(w, name)
	}
	sent := &requests{}
	first := stand(w, &suite.Actor{Config: sent.counted(w.Pod("first").Config), Name: "first"},
		func(o *leader.Options) { o.RetryPeriod = 8 * time.Second }) // no renewal comes in between
	term := first.lead(1)
	path := "/api/v1/namespaces/NAMESPACE/configmaps"
	seal := func(what string, target leader.Target, want ...string) {
		t.Helper()
		before := len(sent.list())
		target.Resource = corev1.SchemeGroupVersion.WithResource("configmaps")
		w.Must(term.Seal(w.Ctx, target))
		got := slices.DeleteFunc(withoutNamespace(w, sent.list()[before:]), func(r string) bool { return strings.HasSuffix(r, leasePath) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	seal("by name", leader.Target{Names: []string{"a", "missing"}}, "GET "+path+"/a", "PATCH "+path+"/a", "GET "+path+"/missing")
	seal("again", leader.Target{Names: []string{"a"}}, "GET "+path+"/a")
	seal("all", leader.Target{}, "GET "+path, "PATCH "+path+"/b", "PATCH "+path+"/c")
	seal("all again", leader.Target{}, "GET "+path)
	seal("none", leader.Target{Selector: "app=other"}, "GET "+path)
	if err := term.Seal(w.Ctx, leader.Target{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Names: []string{"unguarded"}}); err != nil {
		t.Errorf("an object that does not exist: %v", err)
	}
	w.Must(w.Admin.Create(w.Ctx, w.ConfigMap("unguarded")))
	if err := term.Seal(w.Ctx, leader.Target{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Names: []string{"unguarded"}}); err == nil ||
		!strings.Contains(err.Error(), "it is not guarded by FencedLease") {
		t.Errorf("an object that nobody guards: %v", err)
	}
}
