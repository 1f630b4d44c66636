package leadership

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/test/suite"
)

// The timings of the workers that hand over.
const (
	shortLease    = 3 * time.Second
	shortDeadline = 2 * time.Second
	shortRetry    = 400 * time.Millisecond
)

// manager is a worker that is a controller-runtime manager.
func (w *worker) manager(ctx context.Context) error {
	lease, deadline, retry := shortLease, shortDeadline, shortRetry
	mgr, election, err := leader.NewManager(w.config, ctrl.Options{
		Logger:                        logr.Discard(),
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       w.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &deadline,
		RetryPeriod:                   &retry,
	}, leader.Options{
		Identity: w.name,
		Seal: []leader.Target{
			{Resource: corev1.SchemeGroupVersion.WithResource("configmaps")},
			{Resource: ledgers},
		},
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(&books{worker: w, election: election, client: mgr.GetClient()}); err != nil {
		return err
	}
	err = mgr.Start(ctx)
	if leader.IsFenced(err) {
		w.diary.note(rests, err.Error())
		return nil // a Deployment starts another
	}
	return err
}

// books is the work of a manager that leads: it knows nothing of fencing, but for
// what the test wants to know.
type books struct {
	*worker

	election *leader.Election
	client   client.Client
	token    fence.Token // of its only term
	seq      atomic.Int64
}

// verb is one way to write, and how often a second.
type verb struct {
	name  string
	rate  int
	write func(*books, context.Context) error
}

// verbs are 50 writes a second.
var verbs = []verb{
	{"update", 10, (*books).update},
	{"merge patch", 10, (*books).mergePatch},
	{"apply", 8, (*books).apply},
	{"JSON patch", 6, (*books).jsonPatch},
	{"update of a custom resource", 4, (*books).updateLedger},
	{"update of /status", 4, (*books).updateStatus},
	{"patch of /status", 4, (*books).patchStatus},
	{"create and delete", 4, (*books).createOrDelete},
}

// Start writes in every way until ctx ends, and then once more.
func (b *books) Start(ctx context.Context) error {
	term := b.election.Term()
	if term == nil {
		return nil // it was short
	}
	b.token = term.Token()
	b.diary.note(leads, b.token.String())
	go func() {
		<-ctx.Done()
		b.diary.note(cancelled, context.Cause(ctx).Error())
	}()
	var all sync.WaitGroup
	for _, v := range verbs {
		all.Go(func() {
			tick := time.NewTicker(time.Second / time.Duration(v.rate))
			defer tick.Stop()
			for {
				over := ctx.Err() != nil
				b.note(ctx, v.name, v.write(b, ctx))
				if over {
					return
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
	return nil
}

// note notes how a write ended.
func (b *books) note(ctx context.Context, name string, err error) {
	more := b.token.String() + " " + name
	refusal, ok := leader.RefusalOf(err)
	switch lost := (*leader.LostError)(nil); {
	case err == nil:
		b.diary.note(wrote, more)
	case ok:
		b.diary.note(refused, fmt.Sprintf("%s: %d %s presented=%s current=%s holder=%s",
			more, refusal.Code, refusal.Reason, refusal.Facts.Presented, refusal.Facts.Current, refusal.Facts.Holder))
	case errors.As(err, &lost), errors.Is(err, leader.ErrNoTerm):
		b.diary.note(stopped, more+": "+err.Error())
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), ctx.Err() != nil:
		b.diary.note(missed, more+": "+err.Error())
	default:
		b.diary.note(failed, more+": "+err.Error())
	}
}

// content is what a write says: who decided it, and under which token.
func (b *books) content() map[string]string {
	return map[string]string{
		"writer": b.name, "token": b.token.String(), "n": strconv.FormatInt(b.seq.Add(1), 10),
	}
}

func (b *books) contentAsAny() map[string]any {
	content := map[string]any{}
	for key, value := range b.content() {
		content[key] = value
	}
	return content
}

func (b *books) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: b.namespace, Name: name}
}

func (b *books) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
}

func (b *books) ledger(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	u := newLedger(b.namespace, name)
	return u, b.client.Get(ctx, b.key(name), u)
}

func (b *books) update(ctx context.Context) error {
	cm := &corev1.ConfigMap{}
	if err := b.client.Get(ctx, b.key("updated"), cm); err != nil {
		return err
	}
	cm = cm.DeepCopy()
	cm.Data = b.content()
	return b.client.Update(ctx, cm)
}

func (b *books) mergePatch(ctx context.Context) error {
	before := b.configMap("merged")
	after := before.DeepCopy()
	after.Data = b.content()
	return b.client.Patch(ctx, after, client.MergeFrom(before))
}

func (b *books) apply(ctx context.Context) error {
	return b.client.Apply(ctx, corev1apply.ConfigMap("applied", b.namespace).WithData(b.content()),
		client.FieldOwner("books"), client.ForceOwnership)
}

func (b *books) jsonPatch(ctx context.Context) error {
	content := b.content()
	patch := fmt.Sprintf(`[{"op":"add","path":"/data","value":{"writer":%q,"token":%q,"n":%q}}]`,
		content["writer"], content["token"], content["n"])
	return b.client.Patch(ctx, b.configMap("patched"), client.RawPatch(types.JSONPatchType, []byte(patch)))
}

func (b *books) updateLedger(ctx context.Context) error {
	u, err := b.ledger(ctx, "updated")
	if err != nil {
		return err
	}
	u.Object["spec"] = b.contentAsAny()
	return b.client.Update(ctx, u)
}

func (b *books) updateStatus(ctx context.Context) error {
	u, err := b.ledger(ctx, "reported")
	if err != nil {
		return err
	}
	u.Object["status"] = b.contentAsAny()
	return b.client.Status().Update(ctx, u)
}

func (b *books) patchStatus(ctx context.Context) error {
	before := newLedger(b.namespace, "report-patched")
	after := before.DeepCopy()
	after.Object["status"] = b.contentAsAny()
	return b.client.Status().Patch(ctx, after, client.MergeFrom(before))
}

// createOrDelete creates an object or, where there is one, deletes it.
func (b *books) createOrDelete(ctx context.Context) error {
	cm := b.configMap("short-lived")
	suite.GuardedBy(leaseName)(cm)
	cm.Data = b.content()
	err := b.client.Create(ctx, cm)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := b.client.Get(ctx, b.key(cm.Name), cm); err != nil {
		return err
	}
	if err := b.client.Delete(ctx, cm, client.Preconditions{UID: &cm.UID}); err != nil {
		return err
	}
	b.diary.note(deleted, b.token.String()+" "+string(cm.UID))
	return nil
}

// deleted is what a worker notes of an object that it deleted.
const deleted = "deleted"
