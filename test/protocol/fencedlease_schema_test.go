package protocol

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// document is a FencedLease as a user writes it, with no field that was not
// written.
func document(w *suite.World, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "FencedLease",
		"metadata": map[string]any{"namespace": w.Namespace, "name": name},
	}}
	if spec != nil {
		object.Object["spec"] = spec
	}
	return object
}

// invalid is the reason of the API server's own validation.
const invalid = fence.Reason(metav1.StatusReasonInvalid)

func TestFencedLeaseDefaults(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	for name, spec := range map[string]map[string]any{"no-spec": nil, "empty-spec": {}} {
		object := document(w, name, spec)
		suite.Admitted(t, w.Admin.Create(w.Ctx, object))
		want := map[string]any{
			"leaseDurationSeconds": int64(15), "minToken": int64(1), "tokenOrder": "NotOlder", "identities": []any{"Pod"},
			"verification": "Linearizable", "enforcement": "Deny", "allowControlPlane": false,
		}
		if got := asJSON(t, object.Object["spec"]); got != asJSON(t, want) {
			t.Errorf("%s: the spec is %s, want %s", name, got, asJSON(t, want))
		}
		// The Lease has the name of the FencedLease.
		w.AwaitCondition(name, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonFenced)
		if lease := w.Lease(name); *lease.Spec.LeaseDurationSeconds != 15 {
			t.Errorf("leaseDurationSeconds %d of the Lease, want 15", *lease.Spec.LeaseDurationSeconds)
		}
	}
}

// Every rule of the schema: what is valid, and what is refused with which words;
// as a creation, and as a change of a FencedLease that is there.
func TestFencedLeaseFields(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("existing")
	existing := document(w, "existing", nil)

	long := strings.Repeat("a", 63) + "."
	for name, tc := range map[string]struct {
		field string
		value any
		want  string // part of the message; "" if it is valid
	}{
		"leaseName a DNS subdomain":      {"leaseName", "payments.v1", ""},
		"leaseName of 253 characters":    {"leaseName", strings.Repeat(long, 3) + strings.Repeat("a", 61), ""},
		"leaseName of 254 characters":    {"leaseName", strings.Repeat(long, 3) + strings.Repeat("a", 62), "253"},
		"leaseName empty":                {"leaseName", "", "at least 1"},
		"leaseName in capitals":          {"leaseName", "Payments", "leaseName must be a DNS subdomain"},
		"leaseName with a slash":         {"leaseName", "a/b", "leaseName must be a DNS subdomain"},
		"leaseDurationSeconds least":     {"leaseDurationSeconds", int64(1), ""},
		"leaseDurationSeconds most":      {"leaseDurationSeconds", int64(86400), ""},
		"leaseDurationSeconds zero":      {"leaseDurationSeconds", int64(0), "greater than or equal to 1"},
		"leaseDurationSeconds too many":  {"leaseDurationSeconds", int64(86401), "less than or equal to 86400"},
		"leaseDurationSeconds a string":  {"leaseDurationSeconds", "15", "must be of type integer"},
		"minToken least":                 {"minToken", int64(1), ""},
		"minToken most":                  {"minToken", int64(1 << 50), ""},
		"minToken zero":                  {"minToken", int64(0), "greater than or equal to 1"},
		"minToken negative":              {"minToken", int64(-1), "greater than or equal to 1"},
		"minToken above 2^50":            {"minToken", int64(1<<50 + 1), "less than or equal to 1125899906842624"},
		"tokenOrder NotOlder":            {"tokenOrder", "NotOlder", ""},
		"tokenOrder StrictlyNewer":       {"tokenOrder", "StrictlyNewer", ""},
		"tokenOrder another":             {"tokenOrder", "Newest", `supported values: "NotOlder", "StrictlyNewer"`},
		"tokenOrder empty":               {"tokenOrder", "", `supported values: "NotOlder", "StrictlyNewer"`},
		"identities one":                 {"identities", []any{"Certificate"}, ""},
		"identities none":                {"identities", []any{}, "at least 1 items"},
		"identities both":                {"identities", []any{"Certificate", "Pod"}, ""},
		"identities a user":              {"identities", []any{"User"}, `supported values: "Pod", "Certificate"`},
		"identities twice the same":      {"identities", []any{"Pod", "Pod"}, "Duplicate value"},
		"identities too many":            {"identities", []any{"Pod", "Certificate", "Pod"}, "at most 2 items"},
		"verification Linearizable":      {"verification", "Linearizable", ""},
		"verification Cached":            {"verification", "Cached", ""},
		"verification another":           {"verification", "Never", `supported values: "Linearizable", "Cached"`},
		"enforcement Deny":               {"enforcement", "Deny", ""},
		"enforcement Warn":               {"enforcement", "Warn", ""},
		"enforcement another":            {"enforcement", "Off", `supported values: "Deny", "Warn"`},
		"allowControlPlane true":         {"allowControlPlane", true, ""},
		"allowControlPlane no boolean":   {"allowControlPlane", "yes", "must be of type boolean"},
		"a field that there is not":      {"failover", "fast", `unknown field "spec.failover"`},
		"allowControlPlane left to null": {"allowControlPlane", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(err error) {
				t.Helper()
				switch {
				case tc.want == "":
					suite.Admitted(t, err)
				case strings.Contains(tc.want, "unknown field"):
					suite.Refused(t, err, 400, fence.Reason(metav1.StatusReasonBadRequest), tc.want)
				default:
					suite.Refused(t, err, 422, invalid, tc.want, "spec."+tc.field)
				}
			}
			strict := client.WithFieldValidation(w.Admin.Client, client.FieldValidation(metav1.FieldValidationStrict))
			check(strict.Create(w.Ctx, document(w, "created", map[string]any{tc.field: tc.value}), client.DryRunAll))

			err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // with the controller
				changed := existing.DeepCopy()
				w.Must(w.Admin.Get(w.Ctx, client.ObjectKeyFromObject(existing), changed))
				w.Must(unstructured.SetNestedField(changed.Object, tc.value, "spec", tc.field))
				return strict.Update(w.Ctx, changed, client.DryRunAll)
			})
			if tc.field == "leaseName" && tc.want == "" {
				suite.Refused(t, err, 422, invalid, "spec.leaseName is immutable")
				return
			}
			check(err)
		})
	}
}

// The name is used as the value of a label.
func TestFencedLeaseNames(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	const words = "the name must be a DNS label of at most 63 characters: it is used as a label value"
	for name, valid := range map[string]bool{
		"a":                     true,
		"0-9":                   true,
		strings.Repeat("a", 63): true,
		strings.Repeat("a", 64): false,
		"payments.v1":           false,
		"a-.b":                  false,
	} {
		err := w.Admin.Create(w.Ctx, document(w, name, nil), client.DryRunAll)
		switch {
		case valid:
			suite.Admitted(t, err)
		case strings.Contains(name, "-."): // not even a name by Kubernetes' own rules
			suite.Refused(t, err, 422, invalid, "metadata.name")
		default:
			suite.Refused(t, err, 422, invalid, words)
		}
	}

	// The longest one works from end to end.
	name := strings.Repeat("a", 63)
	w.FencedLease(name)
	if token := w.Pod("worker").Acquire(name, "worker"); token != 1 {
		t.Errorf("token %s, want 1", token)
	}
	w.Guarded("account-99", name, 1)
}

// leaseName is immutable: what it defaults to, too.
func TestFencedLeaseLeaseNameIsImmutable(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	const words = "spec.leaseName is immutable: create another FencedLease for another Lease"
	w.FencedLease("payments")
	w.FencedLease("named", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseName = "lease" })
	for _, tc := range []struct {
		name, patch string
		valid       bool
	}{
		{"payments", `{"spec":{"leaseName":"payments"}}`, true}, // says what was the default
		{"payments", `{"spec":{"leaseName":null}}`, true},
		{"payments", `{"spec":{"leaseName":"other"}}`, false},
		{"payments", `{"spec":null}`, true},
		{"named", `{"spec":{"leaseName":"lease"}}`, true},
		{"named", `{"spec":{"leaseName":"other"}}`, false},
		{"named", `{"spec":{"leaseName":"named"}}`, false},
		{"named", `{"spec":{"leaseName":null}}`, false},
		{"named", `{"spec":null}`, false},
		{"named", `{"spec":{"minToken":5}}`, true},
	} {
		fl := &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: tc.name}}
		err := w.Admin.Patch(w.Ctx, fl, client.RawPatch(types.MergePatchType, []byte(tc.patch)))
		if tc.valid {
			suite.Admitted(t, err)
		} else {
			suite.Refused(t, err, 422, invalid, words)
		}
	}
}

// status.token can neither be lowered nor removed, by nobody and in no way.
func TestFencedLeaseStatusTokenIsMonotonic(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	const words = "status.token can neither be lowered nor removed: tokens never fall"
	w.FencedLease("payments")
	w.Must(setStatusToken(w, 57))

	read := func() *unstructured.Unstructured {
		t.Helper()
		object := document(w, "payments", nil)
		w.Must(w.Admin.Get(w.Ctx, w.Key("payments"), object))
		return object
	}
	for name, patch := range map[string]string{
		"lowered":            `{"status":{"token":56}}`,
		"lowered to 1":       `{"status":{"token":1}}`,
		"null":               `{"status":{"token":null}}`,
		"the whole status":   `{"status":null}`,
		"all but the token":  `{"status":{"token":null,"observedGeneration":1}}`,
		"conditions as well": `{"status":{"token":null,"conditions":[]}}`,
	} {
		err := w.Admin.Status().Patch(w.Ctx, document(w, "payments", nil), client.RawPatch(types.MergePatchType, []byte(patch)))
		suite.Refused(t, err, 422, invalid, words)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	err := w.Admin.Status().Patch(w.Ctx, document(w, "payments", nil),
		client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/status/token"}]`)))
	suite.Refused(t, err, 422, invalid, words)

	for name, change := range map[string]func(map[string]any){
		"lowered by an update": func(o map[string]any) { _ = unstructured.SetNestedField(o, int64(5), "status", "token") },
		"removed by an update": func(o map[string]any) { unstructured.RemoveNestedField(o, "status", "token") },
		"without a status":     func(o map[string]any) { delete(o, "status") },
		"with null": func(o map[string]any) {
			_ = unstructured.SetNestedField(o, nil, "status", "token")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.Eventually("refused for the token, not for a conflict", func() error {
				object := read()
				change(object.Object)
				err := w.Admin.Status().Update(w.Ctx, object)
				if err != nil && strings.Contains(err.Error(), "the object has been modified") {
					return err
				}
				suite.Refused(t, err, 422, invalid, words)
				return nil
			})
		})
	}

	// Bounds, and the way up.
	for patch, part := range map[string]string{
		`{"status":{"token":9007199254740992}}`: "less than or equal to 9007199254740991",
		`{"status":{"token":0}}`:                "greater than or equal to 1",
	} {
		err := w.Admin.Status().Patch(w.Ctx, document(w, "payments", nil), client.RawPatch(types.MergePatchType, []byte(patch)))
		suite.Refused(t, err, 422, invalid, part)
	}
	suite.Admitted(t, setStatusToken(w, 57))
	suite.Admitted(t, setStatusToken(w, 58))

	// A write of the main resource does not reach the status at all.
	w.Eventually("a status that is left out stays", func() error {
		object := read()
		delete(object.Object, "status")
		return w.Admin.Update(w.Ctx, object)
	})
	if got := w.GetFencedLease("payments").Status.Token; got != 58 {
		t.Errorf("status.token %d, want 58", got)
	}
}
