package leadership

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/test/suite"
)

// retryPeriod is that of candidates in these tests: short, so that they notice
// soon. Their other timings are client-go's, so that a busy machine ends no term.
const retryPeriod = 200 * time.Millisecond

// slack is what a busy machine may take on top.
const slack = 3 * time.Second

// candidate is one in this process, with the work of its terms in the hands of the
// test.
type candidate struct {
	*leader.Election

	w     *suite.World
	actor *suite.Actor
	terms chan tenure
	leave context.CancelFunc
	done  chan struct{}
	err   error // what Run returned; to be read once done is closed
}

// tenure is a term in which work has begun.
type tenure struct {
	*leader.Term

	ctx    context.Context // of the work
	finish chan error      // ends the work
}

// stand makes somebody a candidate, until the end of the test.
func stand(w *suite.World, actor *suite.Actor, change ...func(*leader.Options)) *candidate {
	w.T.Helper()
	options := leader.Options{Namespace: w.Namespace, Name: leaseName, Identity: actor.Name, RetryPeriod: retryPeriod}
	for _, c := range change {
		c(&options)
	}
	election, err := leader.New(actor.Config, options)
	w.Must(err)
	ctx, leave := context.WithCancel(klog.NewContext(w.Ctx, logr.Discard()))
	c := &candidate{Election: election, w: w, actor: actor, terms: make(chan tenure, 1), leave: leave, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = election.Run(ctx, c.work)
	}()
	w.T.Cleanup(c.resign)
	return c
}

func (c *candidate) work(ctx context.Context, term *leader.Term) error {
	held := tenure{term, ctx, make(chan error)}
	c.terms <- held
	select {
	case err := <-held.finish:
		return err
	case <-ctx.Done():
		return nil
	}
}

// resign ends the candidacy, in good order.
func (c *candidate) resign() {
	c.leave()
	<-c.done
}

// lead waits until the candidate leads with that token.
func (c *candidate) lead(token fence.Token) tenure {
	c.w.T.Helper()
	select {
	case held := <-c.terms:
		if held.Token() != token {
			c.w.T.Fatalf("%s leads with token %s, want %s", c.actor.Name, held.Token(), token)
		}
		return held
	case <-time.After(suite.Patience):
		c.w.T.Fatalf("%s does not lead", c.actor.Name)
	}
	panic("unreachable")
}

// waits checks that work does not begin, while the Lease is held and renewed.
func (c *candidate) waits() {
	c.w.T.Helper()
	renewals := 0
	var last time.Time
	c.w.Eventually(c.actor.Name+" holds the Lease and renews it", func() error {
		lease := &coordinationv1.Lease{}
		if err := c.w.Admin.Get(c.w.Ctx, c.w.Key(leaseName), lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != c.actor.Name || lease.Spec.RenewTime == nil {
			return fmt.Errorf("the holder is %v", lease.Spec.HolderIdentity)
		}
		if !lease.Spec.RenewTime.Time.Equal(last) {
			renewals, last = renewals+1, lease.Spec.RenewTime.Time
		}
		if renewals < 4 {
			return errors.New("not renewed yet")
		}
		return nil
	})
	if len(c.terms) > 0 || c.Term() != nil {
		c.w.T.Fatalf("%s works already", c.actor.Name)
	}
}

// lost checks that a term is over for a reason, at once or within a time, and that
// its context says so.
func (h tenure) lost(t *testing.T, why error, within time.Duration) leader.LostError {
	t.Helper()
	select {
	case <-h.ctx.Done():
	case <-time.After(within):
		t.Fatalf("the work was not cancelled within %s; the term says %v", within, h.Err())
	}
	var lost *leader.LostError
	if !errors.As(context.Cause(h.ctx), &lost) || !errors.Is(lost, why) {
		t.Fatalf("the work was cancelled with %v, want %v", context.Cause(h.ctx), why)
	}
	if !errors.Is(h.Err(), lost) {
		t.Errorf("the term ended with %v, and its context with %v", h.Err(), lost)
	}
	return *lost
}

// lives checks that a term goes on.
func (h tenure) lives(t *testing.T) {
	t.Helper()
	if h.Err() != nil || h.ctx.Err() != nil {
		t.Fatalf("the term is over: %v", context.Cause(h.ctx))
	}
}

// typed is a client-go clientset whose writes belong to the terms of a candidate.
func (c *candidate) typed() kubernetes.Interface {
	c.w.T.Helper()
	client, err := kubernetes.NewForConfig(c.Config(c.actor.Config))
	c.w.Must(err)
	return client
}

// dynamic is client-go's other client.
func (c *candidate) dynamic() dynamic.Interface {
	c.w.T.Helper()
	client, err := dynamic.NewForConfig(c.Config(c.actor.Config))
	c.w.Must(err)
	return client
}

// likeManager is the client that a manager would have: made with an HTTP client
// that is shared with others.
func (c *candidate) likeManager() client.Client {
	c.w.T.Helper()
	scheme := runtime.NewScheme()
	c.w.Must(clientgoscheme.AddToScheme(scheme))
	shared, err := rest.HTTPClientFor(c.actor.Config)
	c.w.Must(err)
	made, err := c.NewClient(c.actor.Config, client.Options{Scheme: scheme, HTTPClient: shared})
	c.w.Must(err)
	return made
}

// fenced is a world with FencedLease payments.
func fenced(t *testing.T) *suite.World {
	t.Helper()
	w := suite.New(t)
	w.FencedLease(leaseName)
	return w
}

// guarded creates a guarded ConfigMap that nobody has written yet.
func guarded(w *suite.World, name string) {
	w.T.Helper()
	w.Must(w.Admin.Create(w.Ctx, w.ConfigMap(name, suite.GuardedBy(leaseName))))
}

// pay writes the balance of the account, by a patch that knows nothing of fencing.
func pay(ctx context.Context, client kubernetes.Interface, namespace, balance string) error {
	return payTo(ctx, client, namespace, account, balance)
}

// payTo writes that of another.
func payTo(ctx context.Context, client kubernetes.Interface, namespace, name, balance string) error {
	_, err := client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, mergePatch,
		[]byte(`{"data":{"balance":"`+balance+`"}}`), metav1.PatchOptions{})
	return err
}

func isNoTerm(err error) bool { return errors.Is(err, leader.ErrNoTerm) && leader.IsFenced(err) }

// stands checks the balance and the mark of the account.
func stands(w *suite.World, balance, mark string) {
	w.T.Helper()
	cm := w.GetConfigMap(account)
	if cm.Data["balance"] != balance || cm.Annotations[annotationToken] != mark {
		w.T.Errorf("balance %q, mark %q; want %q and %q", cm.Data["balance"], cm.Annotations[annotationToken], balance, mark)
	}
}
