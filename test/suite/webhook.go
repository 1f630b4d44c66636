package suite

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mutation is what a mutating webhook of somebody else does: it returns a JSON
// patch, empty for none.
type Mutation func(*admissionv1.AdmissionRequest) []JSONPatch

// JSONPatch is one operation of a JSON patch.
type JSONPatch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// MutatingWebhook registers a mutating webhook on Leases and ConfigMaps of this
// namespace with a label team that has that value. The API server calls it after ours, and
// again, if it says so, where ours changed something since.
func (w *World) MutatingWebhook(team string, again admissionregistrationv1.ReinvocationPolicyType, mutate Mutation) {
	w.T.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	w.Must(err)
	pair, err := tls.X509KeyPair(certificate, key)
	w.Must(err)
	var called atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		called.Store(true)
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(rw, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if patch := mutate(review.Request); len(patch) > 0 {
			review.Response.Patch, err = json.Marshal(patch)
			kind := admissionv1.PatchTypeJSONPatch
			review.Response.PatchType = &kind
		}
		review.Request = nil
		if err != nil || json.NewEncoder(rw).Encode(review) != nil {
			http.Error(rw, "no answer", http.StatusInternalServerError)
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	w.T.Cleanup(server.Close)

	fail, none, url := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, server.URL
	config := &admissionregistrationv1.MutatingWebhookConfiguration{
		// Webhooks are called in the order of these names: after "fencedlease".
		ObjectMeta: metav1.ObjectMeta{Name: "z-" + w.Namespace + "-" + rand.String(5)},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "somebody.example.com",
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: certificate},
			FailurePolicy:           &fail,
			SideEffects:             &none,
			ReinvocationPolicy:      &again,
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"coordination.k8s.io", ""}, APIVersions: []string{"v1"}, Resources: []string{"leases", "configmaps"},
				},
			}},
		}},
	}
	w.Must(w.Admin.Create(w.Ctx, config))
	w.T.Cleanup(func() { _ = client.IgnoreNotFound(w.Admin.Delete(w.Ctx, config)) })
	w.Eventually("the API server calls the webhook", func() error {
		probe := &coordinationv1.Lease{}
		probe.Namespace, probe.Name, probe.Labels = w.Namespace, "probe", map[string]string{"team": team}
		w.Must(w.Admin.Create(w.Ctx, probe, client.DryRunAll))
		if !called.Load() {
			return errors.New("not called yet")
		}
		return nil
	})
}
