package protocol

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// huge is nearly all that a ConfigMap may hold: 1 MiB.
const huge = 1<<20 - 4096

// filled fills a ConfigMap with one character.
func filled(with string) func(client.Object) {
	return func(o client.Object) {
		if cm, ok := o.(*corev1.ConfigMap); ok {
			cm.Data = map[string]string{"balance": strings.Repeat(with, huge/len(with))}
		}
	}
}

// patiently tries again while a webhook does not answer in time: with the race
// detector and a busy machine, a review of megabytes takes seconds.
func patiently(w *suite.World, try func() error) (err error) {
	w.T.Helper()
	w.Eventually("a webhook answers in time", func() error {
		if err = try(); apierrors.IsInternalError(err) {
			return err
		}
		return nil
	})
	return err
}

// TestG12HugeObject: an object of nearly 1 MiB is in a review twice. Not in
// parallel, since it is a lot of work.
func TestG12HugeObject(t *testing.T) {
	s := secondTerm(t, nil)
	create := func(token string) error {
		return patiently(s.World, func() error {
			return s.second.Create(s.Ctx, s.ConfigMap("account", suite.GuardedBy("payments"), suite.Token(token), filled("a")))
		})
	}
	modify := func(a *suite.Actor, change ...func(client.Object)) error {
		return patiently(s.World, func() error { return a.Modify("account", change...) })
	}
	deletes := func(a *suite.Actor) error {
		return patiently(s.World, func() error { return remove(s.World, a, "account") })
	}
	one, two := s.presents("1"), s.presents("2")

	suite.Refused(t, create("1"), 412, fence.ReasonStale)
	suite.Admitted(t, create("2"))
	suite.Refused(t, modify(s.first, filled("b")), 428, fence.ReasonRequired)
	suite.Refused(t, modify(one, filled("b")), 412, fence.ReasonStale)
	suite.Admitted(t, modify(s.second, filled("b")))
	suite.Admitted(t, modify(two, filled("c"), finalizers(ourFinalizer)))
	suite.Refused(t, deletes(s.first), 428, fence.ReasonRequired)
	suite.Admitted(t, deletes(s.second))
	// What differs has to be found out in full now.
	suite.Refused(t, modify(s.first, finalizers(), filled("d")), 428, fence.ReasonRequired)
	suite.Admitted(t, modify(s.first, finalizers()))
}
