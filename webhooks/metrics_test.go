package webhooks

import (
	"context"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fencedlease/fencedlease/fence"
)

func TestMetricsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := RegisterMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if err := RegisterMetrics(registry); err == nil {
		t.Error("registering twice is no error")
	}
}

func TestDurationBuckets(t *testing.T) {
	if !slices.IsSorted(durationBuckets) {
		t.Errorf("not in order: %v", durationBuckets)
	}
	if last := durationBuckets[len(durationBuckets)-1]; last < handlerTimeout.Seconds() {
		t.Errorf("the last bucket ends at %gs, before a call does", last)
	}
}

func TestDecisionsAreCounted(t *testing.T) {
	yes := true
	request := func(dryRun *bool) admission.Request {
		return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update, DryRun: dryRun}}
	}
	for name, tc := range map[string]struct {
		request  admission.Request
		response admission.Response
		labels   []string
	}{
		"allowed": {
			request(nil), admission.Allowed("well"), []string{"test", "UPDATE", "allow", "", "false"},
		},
		"allowed with a patch, in a dry run": {
			request(&yes), admission.Patched(""), []string{"test", "UPDATE", "allow", "", "true"},
		},
		"refused": {
			request(nil), refused(request(nil), &fence.Refusal{Code: 412, Reason: fence.ReasonStale}),
			[]string{"test", "UPDATE", "refuse", "FencingTokenStale", "false"},
		},
		"makes no sense": {
			request(nil), undecodable(context.Canceled), []string{"test", "UPDATE", "refuse", "Malformed", "false"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			counter := decisions.WithLabelValues(tc.labels...)
			before := countOf(t, counter)
			handler := handlerFunc(func(context.Context) admission.Response { return tc.response })
			counted{webhook: "test", next: handler}.Handle(t.Context(), tc.request)
			if got := countOf(t, counter) - before; got != 1 {
				t.Errorf("%v was counted %g times", tc.labels, got)
			}
		})
	}
}

func countOf(t *testing.T, counter prometheus.Counter) float64 {
	t.Helper()
	var value dto.Metric
	if err := counter.Write(&value); err != nil {
		t.Fatal(err)
	}
	return value.GetCounter().GetValue()
}

func TestIsSeal(t *testing.T) {
	const guarded = `"labels":{"fencedlease.io/guarded-by":"x"}`
	token := func(n string) string { return `"annotations":{"fencedlease.io/token":"` + n + `"}` }
	one := object("1", guarded, token("1"))
	for name, tc := range map[string]struct {
		old, updated []byte
		subresource  string
		want         bool
	}{
		"the token rises":                {old: one, updated: object("1", guarded, token("2")), want: true},
		"the first token":                {old: object("1", guarded), updated: object("1", guarded, token("1")), want: true},
		"the token stays":                {old: one, updated: object("1", guarded, token("1"), `"managedFields":[{}]`)},
		"data changes as well":           {old: one, updated: object("2", guarded, token("2"))},
		"another annotation as well":     {old: one, updated: object("1", guarded, `"annotations":{"fencedlease.io/token":"2","a":"b"}`)},
		"the label goes":                 {old: one, updated: object("1", token("2"))},
		"a create":                       {updated: one},
		"a delete":                       {old: one},
		"the status (which has no data)": {old: one, updated: object("1", guarded, token("2")), subresource: "status"},
	} {
		t.Run(name, func(t *testing.T) {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, SubResource: tc.subresource,
				OldObject: runtime.RawExtension{Raw: tc.old}, Object: runtime.RawExtension{Raw: tc.updated},
			}}
			switch {
			case tc.old == nil:
				req.Operation = admissionv1.Create
			case tc.updated == nil:
				req.Operation = admissionv1.Delete
			}
			request, err := guardRequest(req)
			if err != nil {
				t.Fatal(err)
			}
			if got := isSeal(req, request); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestMintedIn(t *testing.T) {
	lease := func(token string) *fence.Lease { return &fence.Lease{Keys: fence.Keys{Token: token}} }
	for name, tc := range map[string]struct {
		old  *fence.Lease
		new  string
		want bool
	}{
		"the first":            {old: lease(""), new: "1", want: true},
		"the next":             {old: lease("1"), new: "2", want: true},
		"of a new Lease":       {new: "8", want: true},
		"none":                 {old: lease(""), new: ""},
		"none, of a new Lease": {new: ""},
		"the same":             {old: lease("2"), new: "2"},
		"what was no token":    {old: lease("x"), new: "1", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mintedIn(fence.LeaseWrite{Old: tc.old, New: *lease(tc.new)}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
