package leadership

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestAppliesWithoutForce: two field managers that each apply fields of their own,
// without force, term after term: they do not fight over the token. What they do
// fight over remains a conflict.
func TestAppliesWithoutForce(t *testing.T) {
	t.Parallel()
	for name, actor := range map[string]func(w *suite.World, name string) *suite.Actor{
		"Pods": func(w *suite.World, name string) *suite.Actor { return w.Pod(name) },
		"a user who may impersonate itself": func(w *suite.World, name string) *suite.Actor {
			user := *w.As("admin") // with every right
			user.Name = name
			return &user
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fenced(t)
			guarded(w, account)
			for token, candidateName := range []string{"first", "second", "third"} {
				c := stand(w, actor(w, candidateName))
				held := c.lead(fence.Token(token + 1))
				accounts := c.typed().CoreV1().ConfigMaps(w.Namespace)
				apply := func(manager, field, value string) error {
					_, err := accounts.Apply(held.ctx, corev1apply.ConfigMap(account, w.Namespace).WithData(map[string]string{field: value}),
						metav1.ApplyOptions{FieldManager: manager})
					return err
				}
				for range 2 {
					suite.Admitted(t, apply("left", "left", candidateName))
					suite.Admitted(t, apply("right", "right", candidateName))
				}
				if err := apply("left", "right", "mine"); !apierrors.IsConflict(err) {
					t.Errorf("left applied what is right's: %v", err)
				}
				cm := w.GetConfigMap(account)
				if cm.Data["left"] != candidateName || cm.Data["right"] != candidateName || cm.Annotations[annotationToken] != fence.Token(token+1).String() {
					t.Errorf("after term %d: %v, mark %s", token+1, cm.Data, cm.Annotations[annotationToken])
				}
				c.resign()
			}
		})
	}
}
