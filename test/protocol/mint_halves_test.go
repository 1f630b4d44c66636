package protocol

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

const (
	walkedWrites = 3000

	shortIsFalse = "the short half is false"
	longIsTrue   = "the long half is true"

	podUID     = "authentication.kubernetes.io/pod-uid"
	credential = "authentication.kubernetes.io/credential-id"
)

// TestM6TwoHalves: the condition of mint, and of its check, has a short half for the
// sake of plain renewals, and a long one, which is the rule. Wherever the short one is
// false, so is the long one.
//
// The API server itself says so, of a random walk of writes: two policies have one half
// each, about keys that anybody may write, in place of ours.
func TestM6TwoHalves(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	short, long := halves(w)
	warnUnless(w, "short", shortIsFalse, short)
	warnUnless(w, "long", longIsTrue, "oldObject == null || !("+long+")")

	walk := newWalk(w)
	w.Eventually("both policies are in force", func() error {
		said := walk.write()
		if said[shortIsFalse] && said[longIsTrue] {
			t.Fatalf("at once: %+v", walk.lease)
		}
		walk.all[shortIsFalse] = walk.all[shortIsFalse] || said[shortIsFalse]
		walk.all[longIsTrue] = walk.all[longIsTrue] || said[longIsTrue]
		if !walk.all[shortIsFalse] || !walk.all[longIsTrue] {
			return errors.New("not yet")
		}
		return nil
	})
	counts := map[string]int{}
	for range walkedWrites {
		before := walk.lease.DeepCopy()
		said := walk.write()
		if said[shortIsFalse] && said[longIsTrue] {
			t.Fatalf("%s, but %s, when %s wrote\n%+v, which was\n%+v", shortIsFalse, longIsTrue, walk.last.identity, walk.lease, before)
		}
		for what := range said {
			counts[what]++
		}
	}
	t.Logf("of %d writes: %v", walkedWrites, counts)
	for _, what := range []string{shortIsFalse, longIsTrue} {
		if counts[what] < walkedWrites/50 {
			t.Errorf("too few to show anything: %v", counts)
		}
	}
}

// halves are those of both conditions, which are the same.
func halves(w *suite.World) (short, long string) {
	w.T.Helper()
	key := client.ObjectKey{Name: "fencedlease"}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	w.Must(errors.Join(w.Admin.Get(w.Ctx, key, mutating), w.Admin.Get(w.Ctx, key, validating)))
	mint, check := mutating.Webhooks[0], validating.Webhooks[0]
	if mint.Name != "mint.fencedlease.io" || check.Name != "lease-check.fencedlease.io" ||
		mint.MatchConditions[0].Expression != check.MatchConditions[0].Expression {
		w.T.Fatalf("%s and %s have not the same condition", mint.Name, check.Name)
	}
	text := strings.Join(strings.Fields(mint.MatchConditions[0].Expression), " ")
	text = strings.ReplaceAll(text, "fencedlease.io/", walkedKeys)
	text, begins := strings.CutPrefix(text, "oldObject == null || (( ")
	text, ends := strings.CutSuffix(text, " ))")
	short, long, found := strings.Cut(text, " ) && ( ")
	if !begins || !ends || !found || strings.Contains(long, " ) && ( ") {
		w.T.Fatalf("the condition has no halves: %s", mint.MatchConditions[0].Expression)
	}
	return "oldObject == null || " + short, long
}

// warnUnless has the API server warn about updates of Leases of this namespace unless
// an expression is true.
func warnUnless(w *suite.World, name, message, expression string) {
	w.T.Helper()
	named := metav1.ObjectMeta{Name: w.Namespace + "-" + name}
	for _, object := range []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: named,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Namespace}},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
						Rule: admissionregistrationv1.Rule{
							APIGroups: []string{"coordination.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"leases"},
						},
					}}},
				},
				Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: message}},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: named,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: named.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn},
			},
		},
	} {
		w.Must(w.Admin.Create(w.Ctx, object))
		w.T.Cleanup(func() { w.Must(w.Admin.Delete(w.Ctx, object)) })
	}
}

// walkedKeys stands for fencedlease.io/ in the walk.
const walkedKeys = "walk.example.com/"

// walk is a series of random writes to one Lease.
type walk struct {
	w       *suite.World
	writers []walker
	lease   *coordinationv1.Lease
	last    walker // who wrote
	all     map[string]bool
}

// walker is one of those who write.
type walker struct {
	actor    *suite.Actor
	warnings *suite.Warnings
	identity fence.Identity
}

func newWalk(w *suite.World) *walk {
	w.T.Helper()
	walk := &walk{w: w, all: map[string]bool{}, lease: &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "walk", Labels: map[string]string{}, Annotations: map[string]string{}},
	}}
	for _, actor := range []*suite.Actor{
		w.Pod("worker"), w.Pod("other"), w.User("user"), w.Admin,
		w.ServiceAccount("worker"), // that of the Pods, in none
		// These are impersonated: nobody really has such extras.
		w.Admin.WithExtra(map[string][]string{podUID: {"a", "b"}}),
		w.Admin.WithExtra(map[string][]string{podUID: {"", "a"}}),
		w.Admin.WithExtra(map[string][]string{podUID: {""}, credential: {"X509SHA256=a"}}),
		w.Admin.WithExtra(map[string][]string{credential: {"JTI=a", "X509SHA256=a", "X509SHA256=b"}}),
	} {
		warned, warnings := actor.Warned()
		walk.writers = append(walk.writers, walker{warned, warnings, actor.Identity()})
	}
	w.Must(w.Admin.Create(w.Ctx, walk.lease))
	return walk
}

// write makes the next write, and returns what the policies said.
func (k *walk) write() map[string]bool {
	k.w.T.Helper()
	k.last = anyOf(k.writers...)
	lease := k.lease.DeepCopy()
	switch rand.IntN(4) {
	case 0: // somebody holds the Lease as it should be
		k.hold(lease)
	case 1: // somebody changes it
		for range 1 + rand.IntN(3) {
			k.change(lease)
		}
	case 2: // the holder renews, whoever that is by now, and may do more
		for _, writer := range k.writers {
			if string(writer.identity) == lease.Annotations[walkedKeys+"token-holder"] {
				k.last = writer
			}
		}
		if rand.IntN(3) == 0 {
			k.change(lease)
		}
	case 3: // somebody renews in its place
	}
	if rand.IntN(5) > 0 {
		lease.Spec.RenewTime = anyOf(at(1), at(2), at(3))
	}
	k.w.Must(k.last.actor.Update(k.w.Ctx, lease))
	k.lease = lease
	said := map[string]bool{}
	for _, warning := range k.last.warnings.Take() {
		for _, what := range []string{shortIsFalse, longIsTrue} {
			if strings.Contains(warning, what) {
				said[what] = true
			}
		}
	}
	return said
}

// hold makes one of the writers the holder.
func (k *walk) hold(lease *coordinationv1.Lease) {
	lease.Labels = map[string]string{walkedKeys + "fenced-by": "payments"}
	lease.Annotations = map[string]string{
		walkedKeys + "token": "1", walkedKeys + "token-for": "holder", walkedKeys + "token-holder": string(anyOf(k.writers...).identity),
	}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("holder"), AcquireTime: at(1), RenewTime: at(1), LeaseTransitions: new(int32(1))}
}

// change changes one of the fields that the condition speaks of, or another.
func (k *walk) change(lease *coordinationv1.Lease) {
	set := func(in map[string]string, key string, values ...string) {
		if value := anyOf(values...); value == absent {
			delete(in, walkedKeys+key)
		} else {
			in[walkedKeys+key] = value
		}
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	switch rand.IntN(8) {
	case 0:
		set(lease.Labels, "fenced-by", "payments", "payments", "orders", absent)
		set(lease.Labels, "retired", absent, absent, absent, "true", "false")
	case 1:
		set(lease.Annotations, "token", "1", "1", "1", "2", "007", "0", "x", "", absent,
			"900719925474099", "9007199254740991", "9007199254740992", "99999999999999999999")
	case 2:
		set(lease.Annotations, "token-for", "holder", "holder", "holder", "other", "", absent)
	case 3:
		identity := anyOf(k.writers...).identity
		set(lease.Annotations, "token-holder", string(identity), string(identity), "pod/", "pod/ab", "pod/a", "certificate/a", "certificate/", "user/", "", absent)
	case 4:
		lease.Spec.HolderIdentity = anyOf(new("holder"), new("holder"), new("holder"), new("other"), new(""), nil)
	case 5:
		lease.Spec.AcquireTime = anyOf(at(1), at(2), nil)
	case 6:
		lease.Spec.LeaseTransitions = anyOf(new(int32(1)), new(int32(2)), nil)
	case 7:
		set(lease.Labels, "else", "1", "2", absent)
		set(lease.Annotations, "else", "1", "2", absent)
	}
}

// absent is the value of a key that is not there.
const absent = "-"

func anyOf[T any](values ...T) T { return values[rand.IntN(len(values))] }

func at(second int64) *metav1.MicroTime {
	return &metav1.MicroTime{Time: time.Unix(second, 0)}
}
