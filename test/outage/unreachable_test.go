package outage

import (
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// Where the webhooks cannot reach the API server they admit nothing that they
// would have to look up, and say so in time; the rest goes on without them.
func TestM2APIServerUnreachable(t *testing.T) {
	for name, cut := range map[string]func(*suite.Way){"connections are refused": (*suite.Way).Cut, "connections are silent": (*suite.Way).Silence} {
		t.Run(name, func(t *testing.T) {
			w := suite.New(t)
			way := w.Way()
			// Without the election: a leader that loses sight of the API server
			// ends itself, which is another story.
			runManager(w, cluster.ManagerOptions{APIServer: way.URL, ExtraArgs: []string{"--leader-elect=false"}})
			w.FencedLease("payments")
			pod := w.Pod("worker").Impatient()
			pod.Acquire("payments", "worker")
			w.Guarded("account-99", "payments", 1)
			kept := held("1", "worker", pod.Identity())

			cut(way)
			_, err := pod.TryAcquire("payments", "next")
			suite.Refused(t, err, 503, fence.ReasonUnavailable, `FencedLease "payments" cannot be read`, "a token is never guessed", "try again")
			admin := w.Admin.Impatient()
			suite.Refused(t, admin.Delete(w.Ctx, w.Lease("payments")), 503, fence.ReasonUnavailable, "cannot be read")
			for _, claim := range []string{"1/a", "2/a"} {
				suite.Refused(t, pod.Modify("account-99", suite.Balance("9"), suite.Annotation(v1alpha1.AnnotationWrite, claim)),
					503, fence.ReasonUnavailable)
			}
			suite.Refused(t, admin.Delete(w.Ctx, w.GetConfigMap("account-99")), 503, fence.ReasonUnavailable)
			suite.Refused(t, admin.Create(w.Ctx, w.ConfigMap("account-100", suite.GuardedBy("payments"), suite.Token("1"))),
				503, fence.ReasonUnavailable)
			if got := w.GetConfigMap("account-99").Data["balance"]; got != "0" {
				t.Errorf("balance %s: a write was admitted", got)
			}

			// Renewals, releases and forgeries are decided without a look-up.
			lease, err := pod.Renew("payments")
			suite.Admitted(t, err)
			wantKeys(t, "renewed", lease, kept)
			lease, err = pod.WriteLease("payments", func(l *coordinationv1.Lease) { l.Annotations[v1alpha1.AnnotationToken] = "77" })
			suite.Admitted(t, err)
			wantKeys(t, "forged", lease, kept)
			pod.Release("payments")
			suite.Admitted(t, w.Admin.Create(w.Ctx, w.ConfigMap("unguarded")))

			way.Mend()
			w.Eventually("acquisitions pass again", func() error {
				_, err := pod.TryAcquire("payments", "next")
				return err
			})
			wantKeys(t, "acquired", w.Lease("payments"), held("2", "next", pod.Identity()))
			suite.Admitted(t, pod.Modify("account-99", suite.Balance("1"), suite.Token("2")))
			w.AwaitToken("payments", 2)
		})
	}
}

// While the webhooks are away, Leases that are held stay held, and nothing
// changes hands.
func TestM6WebhooksAway(t *testing.T) {
	for name, outage := range map[string]struct{ begin, end func(*suite.World) error }{
		"stopped": {
			func(w *suite.World) error { return suite.Manager.Stop(w.Ctx) },
			func(w *suite.World) error { return suite.Manager.Restart(w.Ctx) },
		},
		"paused": {
			func(*suite.World) error { return suite.Manager.Pause() },
			func(w *suite.World) error {
				return errors.Join(suite.Manager.Resume(), suite.Cluster.AwaitWebhooks(w.Ctx))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := suite.New(t)
			w.FencedLease("payments")
			pod := w.Pod("worker")
			pod.Acquire("payments", "worker")
			w.Guarded("account-99", "payments", 1)

			w.Must(outage.begin(w))
			over := false
			t.Cleanup(func() {
				if !over {
					w.Must(outage.end(w))
				}
			})
			for range 20 {
				lease, err := pod.Renew("payments")
				suite.Admitted(t, err)
				wantKeys(t, "renewed", lease, held("1", "worker", pod.Identity()))
			}
			unfenced := &coordinationv1.Lease{}
			unfenced.Namespace, unfenced.Name = w.Namespace, "unfenced"
			suite.Take(unfenced, "somebody")
			suite.Admitted(t, pod.Create(w.Ctx, unfenced))
			pod.Acquire("unfenced", "somebody-else")
			pod.Release("unfenced")
			suite.Admitted(t, pod.Delete(w.Ctx, unfenced))
			suite.Admitted(t, w.Admin.Create(w.Ctx, w.ConfigMap("unguarded")))

			for what, err := range map[string]error{
				"an acquisition":  second(pod.TryAcquire("payments", "next")),
				"a guarded write": pod.Modify("account-99", suite.Balance("9"), suite.Token("1")),
				"a deletion":      w.Admin.Delete(w.Ctx, w.Lease("payments")),
			} {
				if !apierrors.IsInternalError(err) {
					t.Errorf("%s: %v, want an internal error: the webhook is away", what, err)
				}
			}
			pod.Release("payments") // needs no webhook either

			w.Must(outage.end(w))
			over = true
			if token := pod.Acquire("payments", "next"); token != 2 {
				t.Errorf("token %s, want 2", token)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }
