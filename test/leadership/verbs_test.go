package leadership

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/test/suite"
)

// write is a write of one guarded object, by some client. The ConfigMap account-99
// and the Ledger books exist.
type write struct {
	name string

	// byExtra says that outside of a Pod it can carry its claim as a user extra only.
	byExtra bool

	do func(ctx context.Context, balance string) error
}

const books99 = "books"

// typedWrites are those of a client-go clientset.
func typedWrites(c *candidate) []write {
	accounts := c.typed().CoreV1().ConfigMaps(c.w.Namespace)
	patch := func(kind types.PatchType, body string) func(context.Context, string) error {
		return func(ctx context.Context, balance string) error {
			_, err := accounts.Patch(ctx, account, kind, []byte(fmt.Sprintf(body, balance)), metav1.PatchOptions{})
			return err
		}
	}
	return []write{
		{"typed update", false, func(ctx context.Context, balance string) error {
			cm, err := accounts.Get(ctx, account, metav1.GetOptions{})
			if err != nil {
				return err
			}
			cm.Data = map[string]string{"balance": balance}
			_, err = accounts.Update(ctx, cm, metav1.UpdateOptions{})
			return err
		}},
		{"typed merge patch", false, patch(types.MergePatchType, `{"data":{"balance":%q}}`)},
		{"typed strategic merge patch", false, patch(types.StrategicMergePatchType, `{"data":{"balance":%q}}`)},
		{"typed JSON patch", true, patch(types.JSONPatchType, `[{"op":"add","path":"/data/balance","value":%q}]`)},
		{"typed apply", false, func(ctx context.Context, balance string) error {
			_, err := accounts.Apply(ctx, corev1apply.ConfigMap(account, c.w.Namespace).WithData(map[string]string{"balance": balance}),
				metav1.ApplyOptions{FieldManager: "clerk", Force: true})
			return err
		}},
		{"typed create and delete", true, func(ctx context.Context, balance string) error {
			cm := c.w.ConfigMap("short-lived", suite.GuardedBy(leaseName), suite.Balance(balance))
			if _, err := accounts.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
				return err
			}
			return accounts.Delete(ctx, cm.Name, metav1.DeleteOptions{})
		}},
		{"typed deletion of a collection", true, func(ctx context.Context, balance string) error {
			cm := c.w.ConfigMap("short-lived-too", suite.GuardedBy(leaseName), suite.Balance(balance))
			cm.Labels["app"] = "short-lived"
			if _, err := accounts.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
				return err
			}
			return accounts.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=short-lived"})
		}},
	}
}

// managerWrites are those of a manager's client.
func managerWrites(c *candidate) []write {
	m := c.likeManager()
	cm := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.w.Namespace, Name: account}}
	}
	return []write{
		{"manager's update", false, func(ctx context.Context, balance string) error {
			object := cm()
			if err := m.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			suite.Balance(balance)(object)
			return m.Update(ctx, object)
		}},
		{"manager's patch", false, func(ctx context.Context, balance string) error {
			after := cm()
			suite.Balance(balance)(after)
			return m.Patch(ctx, after, client.MergeFrom(cm()))
		}},
		{"manager's apply", false, func(ctx context.Context, balance string) error {
			return m.Apply(ctx, corev1apply.ConfigMap(account, c.w.Namespace).WithData(map[string]string{"balance": balance}),
				client.FieldOwner("clerk"), client.ForceOwnership)
		}},
		{"manager's create and delete", true, func(ctx context.Context, balance string) error {
			object := c.w.ConfigMap("short-lived", suite.GuardedBy(leaseName), suite.Balance(balance))
			if err := m.Create(ctx, object); err != nil {
				return err
			}
			return m.Delete(ctx, object)
		}},
		{"manager's deletion of all", true, func(ctx context.Context, balance string) error {
			object := c.w.ConfigMap("short-lived-too", suite.GuardedBy(leaseName), suite.Balance(balance))
			object.Labels["app"] = "short-lived"
			if err := m.Create(ctx, object); err != nil {
				return err
			}
			return m.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(c.w.Namespace), client.MatchingLabels{"app": "short-lived"})
		}},
		{"manager's update of /status", true, func(ctx context.Context, balance string) error {
			u := newLedger(c.w.Namespace, books99)
			if err := m.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
				return err
			}
			u.Object["status"] = map[string]any{"balance": balance}
			return m.Status().Update(ctx, u)
		}},
		{"manager's patch of /status", true, func(ctx context.Context, balance string) error {
			after := newLedger(c.w.Namespace, books99)
			after.Object["status"] = map[string]any{"balance": balance}
			return m.Status().Patch(ctx, after, client.MergeFrom(newLedger(c.w.Namespace, books99)))
		}},
		{"manager's apply of /status", true, func(ctx context.Context, balance string) error {
			u := newLedger(c.w.Namespace, books99)
			u.Object["status"] = map[string]any{"balance": balance}
			return m.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("clerk"), client.ForceOwnership)
		}},
	}
}

// dynamicWrites are those of client-go's dynamic client.
func dynamicWrites(c *candidate) []write {
	books := c.dynamic().Resource(ledgers).Namespace(c.w.Namespace)
	change := func(field, balance string, put func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) error {
		u, err := books.Get(c.w.Ctx, books99, metav1.GetOptions{})
		if err != nil {
			return err
		}
		u.Object[field] = map[string]any{"balance": balance}
		_, err = put(u)
		return err
	}
	return []write{
		{"dynamic update", false, func(ctx context.Context, balance string) error {
			return change("spec", balance, func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return books.Update(ctx, u, metav1.UpdateOptions{})
			})
		}},
		{"dynamic update of /status", true, func(ctx context.Context, balance string) error {
			return change("status", balance, func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return books.UpdateStatus(ctx, u, metav1.UpdateOptions{})
			})
		}},
		{"dynamic patch", false, func(ctx context.Context, balance string) error {
			_, err := books.Patch(ctx, books99, types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"balance":%q}}`, balance)), metav1.PatchOptions{})
			return err
		}},
		{"dynamic JSON patch of /status", true, func(ctx context.Context, balance string) error {
			_, err := books.Patch(ctx, books99, types.JSONPatchType,
				[]byte(fmt.Sprintf(`[{"op":"add","path":"/status","value":{"balance":%q}}]`, balance)), metav1.PatchOptions{}, "status")
			return err
		}},
		{"dynamic apply", false, func(ctx context.Context, balance string) error {
			u := newLedger(c.w.Namespace, books99)
			u.Object["spec"] = map[string]any{"balance": balance}
			_, err := books.Apply(ctx, books99, u, metav1.ApplyOptions{FieldManager: "clerk", Force: true})
			return err
		}},
		{"dynamic create and delete", true, func(ctx context.Context, _ string) error {
			if _, err := books.Create(ctx, newLedger(c.w.Namespace, "short-lived", suite.GuardedBy(leaseName)), metav1.CreateOptions{}); err != nil {
				return err
			}
			return books.Delete(ctx, "short-lived", metav1.DeleteOptions{})
		}},
	}
}

func allWrites(c *candidate) []write {
	return append(append(typedWrites(c), managerWrites(c)...), dynamicWrites(c)...)
}

// TestEveryWrite: every verb of every client carries the token of its term, whoever
// the client is. Without a term none is sent.
func TestEveryWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		identities []v1alpha1.IdentityKind
		actor      func(*suite.World) *suite.Actor

		mayNot bool // impersonate itself, which a write takes that needs the user extra
	}{
		"a Pod":                                  {actor: func(w *suite.World) *suite.Actor { return w.Pod("clerk") }},
		"a Pod whose identity proves nothing":    {[]v1alpha1.IdentityKind{v1alpha1.IdentityCertificate}, powerfulPod, false},
		"a user":                                 {actor: func(w *suite.World) *suite.Actor { return itself(w, w.User("clerk")) }},
		"a user who may not impersonate itself":  {nil, func(w *suite.World) *suite.Actor { return w.User("clerk") }, true},
		"a user whose certificate proves itself": {[]v1alpha1.IdentityKind{v1alpha1.IdentityPod, v1alpha1.IdentityCertificate}, func(w *suite.World) *suite.Actor { return itself(w, w.User("clerk")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := suite.New(t)
			serveLedgers(w)
			w.FencedLease(leaseName, func(spec *v1alpha1.FencedLeaseSpec) { spec.Identities = tc.identities })
			guarded(w, account)
			w.Must(w.Admin.Create(w.Ctx, newLedger(w.Namespace, books99, suite.GuardedBy(leaseName))))
			actor := tc.actor(w)
			actor.Name = "clerk"
			clerk := stand(w, actor)
			writes := allWrites(clerk)
			held := clerk.lead(1)
			for i, write := range writes {
				err := write.do(held.ctx, strconv.Itoa(i))
				if write.byExtra && tc.mayNot {
					if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot impersonate") {
						t.Errorf("%s: %v, want 403 and what is missing", write.name, err)
					}
					for _, short := range []string{"short-lived", "short-lived-too"} { // its creation was admitted
						_ = w.Admin.WithClaim("1").Delete(w.Ctx, w.ConfigMap(short))
						_ = w.Admin.WithClaim("1").Delete(w.Ctx, newLedger(w.Namespace, short))
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", write.name, err)
				}
			}
			held.lives(t)
			for _, write := range writes {
				// A manager's belong to the term that lives when they are made.
				if strings.HasPrefix(write.name, "manager's") {
					continue
				}
				if err := write.do(w.Ctx, "nobody's"); !isNoTerm(err) {
					t.Errorf("%s in no term: %v", write.name, err)
				}
			}

			// The twin: somebody else leads, and this term does not know.
			w.Pod("second").Acquire(leaseName, "second")
			for _, write := range writes {
				if err := write.do(held.ctx, "stale"); err == nil || !isFenced(held.ctx, err) && !isUnclaimed(err) && !tc.mayNot {
					t.Errorf("%s after the term: %v", write.name, err)
				}
			}
			held.lost(t, leader.ErrSuperseded, retryPeriod+slack)
			if cm := w.GetConfigMap(account); cm.Data["balance"] == "stale" || cm.Data["balance"] == "nobody's" || cm.Annotations[annotationToken] != "1" {
				t.Errorf("a stale write was stored: %v, mark %s", cm.Data, cm.Annotations[annotationToken])
			}
		})
	}
}

// isUnclaimed says whether a write was refused for want of a claim: by an identity
// that proves no newer token.
func isUnclaimed(err error) bool {
	refusal, ok := leader.RefusalOf(err)
	return ok && refusal.Reason == fence.ReasonRequired && refusal.Facts.Current == 2 && refusal.Facts.Holder == "second"
}

// powerfulPod is a Pod that may impersonate itself.
func powerfulPod(w *suite.World) *suite.Actor {
	config, err := suite.Cluster.PodConfig(w.Ctx, w.Namespace, "impersonator", "clerk")
	w.Must(err)
	return w.Actor("clerk", config)
}

// itself lets a user impersonate itself, with what the documentation asks for.
func itself(w *suite.World, user *suite.Actor) *suite.Actor {
	name := w.Namespace + ":clerk"
	meta := metav1.ObjectMeta{Name: w.Namespace + "-itself"}
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{name}, Verbs: []string{"impersonate"}},
		{
			APIGroups: []string{"authentication.k8s.io"},
			Resources: []string{"userextras/fencedlease.io/token"},
			Verbs:     []string{"impersonate"},
		},
	}}))
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	w.T.Cleanup(func() {
		_ = w.Admin.Delete(w.Ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta})
		_ = w.Admin.Delete(w.Ctx, &rbacv1.ClusterRole{ObjectMeta: meta})
	})
	return user
}

// TestTheSameUpdateIsNoChange: an update that changes nothing remains a no-op for the
// API server, however its claim is carried. Otherwise a controller that updates on
// each event would wake itself without end.
func TestTheSameUpdateIsNoChange(t *testing.T) {
	t.Parallel()
	for name, actor := range map[string]func(*suite.World) *suite.Actor{
		"a Pod":  func(w *suite.World) *suite.Actor { return w.Pod("clerk") },
		"a user": func(w *suite.World) *suite.Actor { return w.User("clerk") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fenced(t)
			guarded(w, account)
			clerk := actor(w)
			clerk.Name = "clerk"
			c := stand(w, clerk)
			held := c.lead(1)
			for _, write := range append(typedWrites(c)[:3], managerWrites(c)[:3]...) {
				suite.Admitted(t, write.do(held.ctx, write.name))
				once := w.GetConfigMap(account)
				for range 3 {
					suite.Admitted(t, write.do(held.ctx, write.name))
				}
				if again := w.GetConfigMap(account); again.ResourceVersion != once.ResourceVersion {
					t.Errorf("%s: the same once more made revision %s of %s", write.name, again.ResourceVersion, once.ResourceVersion)
				}
				suite.Admitted(t, write.do(held.ctx, "else")) // the twin
				if other := w.GetConfigMap(account); other.ResourceVersion == once.ResourceVersion {
					t.Errorf("%s: another balance made no revision", write.name)
				}
			}
		})
	}
}

// TestStatusAfterAHandOver: the first write of a term may be one to /status, which
// cannot raise the mark: it is sealed first. Under Cached a deletion needs the seal
// as well, and says so.
func TestStatusAfterAHandOver(t *testing.T) {
	t.Parallel()
	for _, verification := range []v1alpha1.Verification{v1alpha1.VerificationLinearizable, v1alpha1.VerificationCached} {
		t.Run(string(verification), func(t *testing.T) {
			t.Parallel()
			w := suite.New(t)
			serveLedgers(w)
			w.FencedLease(leaseName, func(spec *v1alpha1.FencedLeaseSpec) { spec.Verification = verification })
			for range 3 {
				w.Pod("before").Acquire(leaseName, "before")
				w.Pod("before").Release(leaseName)
			}
			names := []string{"by-update", "by-patch", "by-apply", "doomed"}
			for _, name := range names {
				w.Must(w.Admin.Create(w.Ctx, newLedger(w.Namespace, name, suite.GuardedBy(leaseName), suite.Token("3"))))
			}
			c := stand(w, w.Pod("clerk"))
			m := c.likeManager()
			held := c.lead(4)
			ctx := held.ctx
			report := func(name string) *unstructured.Unstructured {
				u := newLedger(w.Namespace, name)
				w.Must(w.Admin.Get(w.Ctx, w.Key(name), u))
				u.Object["status"] = map[string]any{"paid": name}
				return u
			}
			suite.Admitted(t, m.Status().Update(ctx, report("by-update")))
			suite.Admitted(t, m.Status().Patch(ctx, report("by-patch"), client.MergeFrom(newLedger(w.Namespace, "by-patch"))))
			applied := newLedger(w.Namespace, "by-apply")
			applied.Object["status"] = map[string]any{"paid": "by-apply"}
			suite.Admitted(t, m.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("clerk")))
			for _, name := range names[:3] {
				u := newLedger(w.Namespace, name)
				w.Must(w.Admin.Get(w.Ctx, w.Key(name), u))
				if text(u, "status", "paid") != name || u.GetAnnotations()[annotationToken] != "4" {
					t.Errorf("%s: status %q, mark %q", name, text(u, "status", "paid"), u.GetAnnotations()[annotationToken])
				}
			}

			doomed := newLedger(w.Namespace, "doomed")
			if verification == v1alpha1.VerificationCached {
				suite.Refused(t, m.Delete(ctx, doomed), 422, fence.ReasonInvalid, "seal")
				suite.Admitted(t, held.Seal(ctx, leader.Target{Resource: ledgers, Names: []string{"doomed"}}))
			}
			suite.Admitted(t, m.Delete(ctx, doomed))
			held.lives(t)
		})
	}
}
