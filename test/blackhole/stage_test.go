package blackhole

import (
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/suite"
)

// stage is what all these stories begin with: a Pod holds the Lease of FencedLease
// payments, and a user that of orders, each with token 1.
type stage struct {
	*suite.World

	pod, user *suite.Actor
}

func newStage(t *testing.T) *stage {
	t.Helper()
	w := suite.New(t)
	s := &stage{World: w, pod: w.Pod("holder"), user: w.User("holder")}
	for name, who := range map[string]*suite.Actor{"payments": s.pod, "orders": s.user} {
		w.FencedLease(name)
		who.Acquire(name, "holder")
		w.AwaitToken(name, 1)
	}
	return s
}

// stopManager stops the manager, and returns what the webhook configurations are. At
// the end of the test all is installed again.
func (s *stage) stopManager() *configurations {
	s.T.Helper()
	c := installed(s.World)
	s.Must(suite.Manager.Stop(s.Ctx))
	s.T.Cleanup(func() {
		name := metav1.ObjectMeta{Name: "fencedlease"}
		s.Must(client.IgnoreNotFound(s.Admin.Delete(s.Ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: name})))
		s.Must(client.IgnoreNotFound(s.Admin.Delete(s.Ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: name})))
		s.Must(errors.Join(suite.Cluster.Install(s.Ctx), suite.Manager.Restart(s.Ctx)))
	})
	return c
}
