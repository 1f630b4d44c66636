package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// differ is an error if two values differ.
func differ[T comparable](got, want T) error {
	if got != want {
		return fmt.Errorf("it is %v, want %v", got, want)
	}
	return nil
}

// rebuilt is a Lease as clients write it that know nothing of labels and
// annotations.
func rebuilt(old *coordinationv1.Lease) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name, ResourceVersion: old.ResourceVersion},
		Spec:       old.Spec,
	}
}

// A client that rebuilds the Lease from scratch with each PUT loses nothing.
func TestM4ClientThatRebuilds(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")

	lease := rebuilt(w.Lease("payments"))
	suite.Take(lease, "worker")
	suite.Admitted(t, pod.Update(w.Ctx, lease))
	kept := held("payments", "1", "worker", pod.Identity())
	wantKeys(t, "acquired", lease, kept)

	lease = rebuilt(lease)
	lease.Spec.RenewTime = later(lease.Spec.RenewTime)
	suite.Admitted(t, pod.Update(w.Ctx, lease))
	wantKeys(t, "renewed", lease, kept)

	lease = rebuilt(lease)
	lease.Spec.HolderIdentity = new(string)
	suite.Admitted(t, pod.Update(w.Ctx, lease))
	wantKeys(t, "released", lease, kept)

	lease = rebuilt(lease)
	suite.Take(lease, "worker")
	suite.Admitted(t, pod.Update(w.Ctx, lease))
	wantKeys(t, "acquired again", lease, held("payments", "2", "worker", pod.Identity()))
}

// forgeries are all ways to touch one of our keys.
func forgeries() map[string]map[string]any {
	all := map[string]map[string]any{}
	for key, values := range map[string][]any{
		v1alpha1.LabelFencedBy: {"other", "", nil},
		v1alpha1.LabelRetired:  {"true", "false", ""},
	} {
		for _, value := range values {
			all[fmt.Sprintf("label %s: %v", key, value)] = map[string]any{"labels": map[string]any{key: value}}
		}
	}
	for key, values := range map[string][]any{
		v1alpha1.AnnotationToken:       {"2", "9007199254740991", "0", "x", "", nil},
		v1alpha1.AnnotationTokenFor:    {"forger", "", nil},
		v1alpha1.AnnotationTokenHolder: {"pod/forged", "", nil},
	} {
		for _, value := range values {
			all[fmt.Sprintf("annotation %s: %v", key, value)] = map[string]any{"annotations": map[string]any{key: value}}
		}
	}
	all["everything"] = map[string]any{"labels": nil, "annotations": nil}
	return all
}

// Nobody but the operator changes our keys, not an administrator either: the
// write passes and leaves them as they were.
func TestM4Forger(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	kept := held("payments", "1", "worker", pod.Identity())

	for name, metadata := range forgeries() {
		for _, forger := range []*suite.Actor{pod, w.Admin} {
			lease := patched(w, forger, map[string]any{"metadata": withMark(metadata, forger.Name)})
			wantKeys(t, name+" by "+forger.Name, lease, kept)
			if name != "everything" && lease.Annotations["written-by"] != forger.Name {
				t.Errorf("%s by %s: what is not ours was not written", name, forger.Name)
			}
		}
	}
	wantKeys(t, "after all", w.Lease("payments"), kept)
	if token := pod.Acquire("payments", "next"); token != 2 {
		t.Errorf("token %s, want 2", token)
	}
}

// withMark adds a change that is none of ours, so that a write is no no-op.
func withMark(metadata map[string]any, by string) map[string]any {
	marked := map[string]any{}
	for key, value := range metadata {
		marked[key] = value
	}
	annotations := map[string]any{"written-by": by}
	if own, ok := metadata["annotations"].(map[string]any); ok {
		for key, value := range own {
			annotations[key] = value
		}
	} else if _, cleared := metadata["annotations"]; cleared {
		return marked
	}
	marked["annotations"] = annotations
	return marked
}

// patched sends a merge patch of Lease payments, and returns the Lease of the response.
func patched(w *suite.World, by *suite.Actor, patch map[string]any) *coordinationv1.Lease {
	w.T.Helper()
	data, err := json.Marshal(patch)
	w.Must(err)
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = w.Namespace, "payments"
	suite.Admitted(w.T, by.Patch(w.Ctx, lease, client.RawPatch(types.MergePatchType, data)))
	return lease
}

// Forged keys in an acquisition do not reach into what is minted.
func TestM4ForgerWhoAcquires(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("forger")
	lease, err := pod.WriteLease("payments", func(l *coordinationv1.Lease) {
		suite.Take(l, "forger")
		l.Labels[v1alpha1.LabelFencedBy] = "other"
		l.Labels[v1alpha1.LabelRetired] = "true"
		l.Annotations = map[string]string{
			v1alpha1.AnnotationToken: "9007199254740991", v1alpha1.AnnotationTokenFor: "somebody", v1alpha1.AnnotationTokenHolder: "pod/forged",
		}
	})
	suite.Admitted(t, err)
	wantKeys(t, "acquired", lease, held("payments", "1", "forger", pod.Identity()))
}

// A client that applies gets its token like any other, loses nothing when it
// applies again, and can apply no forgery.
func TestM4ClientThatApplies(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	apply := func(transitions int32, annotations map[string]string) *coordinationv1.Lease {
		t.Helper()
		now := metav1.NowMicro()
		acquired := metav1.NewMicroTime(w.GetFencedLease("payments").CreationTimestamp.Time)
		config := coordinationapply.Lease("payments", w.Namespace).WithAnnotations(annotations).WithSpec(coordinationapply.LeaseSpec().
			WithHolderIdentity("worker").WithRenewTime(now).WithAcquireTime(acquired).WithLeaseTransitions(transitions))
		// Candidates force: each takes the fields over from the holder before.
		suite.Admitted(t, pod.Apply(w.Ctx, config, client.FieldOwner("worker"), client.ForceOwnership))
		return w.Lease("payments")
	}
	wantKeys(t, "acquired", apply(1, nil), held("payments", "1", "worker", pod.Identity()))
	wantKeys(t, "renewed", apply(1, nil), held("payments", "1", "worker", pod.Identity()))
	forged := apply(1, map[string]string{v1alpha1.AnnotationTokenFor: "other", "note": "hello"})
	wantKeys(t, "forged", forged, held("payments", "1", "worker", pod.Identity()))
	wantKeys(t, "a new term", apply(2, nil), held("payments", "2", "worker", pod.Identity()))
}

// Nobody but the operator fences a Lease: the labels of others are dropped, when
// they create a Lease as well as later.
func TestM4OnlyTheOperatorFences(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	mine := func(name string) *coordinationv1.Lease {
		lease := &coordinationv1.Lease{}
		lease.Namespace, lease.Name = w.Namespace, name
		lease.Labels = map[string]string{v1alpha1.LabelFencedBy: "payments", v1alpha1.LabelRetired: "true", "team": "billing"}
		lease.Annotations = map[string]string{v1alpha1.AnnotationToken: "7"}
		suite.Take(lease, "worker")
		return lease
	}

	lease := mine("created-by-a-pod")
	suite.Admitted(t, pod.Create(w.Ctx, lease))
	if lease.Labels["team"] != "billing" || len(lease.Labels) != 1 {
		t.Errorf("labels %v, want those that are not ours", lease.Labels)
	}
	if suite.Keys(lease).Token != "" {
		t.Errorf("annotations %v", lease.Annotations)
	}
	lease.Labels[v1alpha1.LabelFencedBy] = "payments"
	suite.Admitted(t, pod.Update(w.Ctx, lease))
	if suite.Keys(lease).FencedBy != "" {
		t.Errorf("labels %v after an update", lease.Labels)
	}
	// It can be deleted like any Lease.
	suite.Admitted(t, pod.Delete(w.Ctx, lease))
}

// The operator clears token-for, but never writes a number or a name.
func TestM4TheOperatorWritesNoNumber(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	lease := patched(w, w.Operator(), map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		v1alpha1.AnnotationToken: "77", v1alpha1.AnnotationTokenFor: "other", v1alpha1.AnnotationTokenHolder: "pod/other",
	}}})
	wantKeys(t, "numbers and names by the operator", lease, held("payments", "1", "worker", pod.Identity()))

	lease = patched(w, w.Operator(), map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		v1alpha1.AnnotationTokenFor: nil,
	}}})
	wantKeys(t, "token-for cleared by the operator", lease, held("payments", "1", "", pod.Identity()))
	lease, err := pod.Renew("payments")
	suite.Admitted(t, err)
	wantKeys(t, "renewed", lease, held("payments", "2", "worker", pod.Identity()))
}

// The webhook touches metadata only: every field of the spec arrives as it was
// sent, those of coordinated leader election too, which few clients know.
func TestM4SpecIsUntouched(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseDurationSeconds = 7 })
	if got := *w.Lease("payments").Spec.LeaseDurationSeconds; got != 7 {
		t.Errorf("leaseDurationSeconds %d of the new Lease, want 7", got)
	}
	lease := w.Lease("payments")
	suite.Take(lease, "worker")
	strategy, preferred := coordinationv1.CoordinatedLeaseStrategy("example.com/other"), "somebody"
	lease.Spec.Strategy, lease.Spec.PreferredHolder = &strategy, &preferred
	sent := asJSON(t, lease.Spec)
	pod := w.Pod("worker")
	suite.Admitted(t, pod.Update(w.Ctx, lease))
	wantKeys(t, "acquired", lease, held("payments", "1", "worker", pod.Identity()))
	if got := asJSON(t, w.Lease("payments").Spec); got != sent {
		t.Errorf("the spec became\n%s, sent was\n%s", got, sent)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func containsText(s, part string) bool { return strings.Contains(s, part) }
