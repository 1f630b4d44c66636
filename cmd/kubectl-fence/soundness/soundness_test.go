package soundness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// certificate is one in PEM that is valid from then until then.
func certificate(t *testing.T, from, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestCheckEntries(t *testing.T) {
	const day = 24 * time.Hour
	fail, ignore := admissionv1.Fail, admissionv1.Ignore
	entryWith := func(policy *admissionv1.FailurePolicyType, bundles ...[]byte) entry {
		return entry{configuration: "fencedlease", policy: policy, client: admissionv1.WebhookClientConfig{CABundle: slices.Concat(bundles...)}}
	}
	good := certificate(t, noon.Add(-day), noon.Add(90*day))
	old := certificate(t, noon.Add(-2*day), noon.Add(-day))
	soon := certificate(t, noon.Add(-day), noon.Add(2*day))
	later := certificate(t, noon.Add(day), noon.Add(90*day))
	for name, tc := range map[string]struct {
		entries []entry
		level   Level
		says    string
	}{
		"as it must be":             {[]entry{entryWith(&fail, good)}, OK, "until 2026-04-02"},
		"by default, it fails":      {[]entry{entryWith(nil, good)}, OK, "fails closed"},
		"an old authority as well":  {[]entry{entryWith(&fail, old, good)}, OK, "until 2026-04-02"},
		"none":                      {nil, Failed, "no webhook configuration has it"},
		"two":                       {[]entry{entryWith(&fail, good), entryWith(&fail, good)}, Warning, "several"},
		"fails open":                {[]entry{entryWith(&ignore, good)}, Failed, "failurePolicy is Ignore"},
		"no bundle":                 {[]entry{entryWith(&fail)}, Failed, "caBundle is empty"},
		"expired":                   {[]entry{entryWith(&fail, old)}, Failed, "expired, the last on 2026-01-01"},
		"expires soon":              {[]entry{entryWith(&fail, soon)}, Warning, "expire on 2026-01-04"},
		"not valid yet":             {[]entry{entryWith(&fail, later)}, Failed, "none of its certificates is valid yet"},
		"no certificate":            {[]entry{entryWith(&fail, []byte("x"))}, Failed, "no certificate in PEM"},
		"a key and no certificate":  {[]entry{entryWith(&fail, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY"}))}, Failed, "no certificate in PEM"},
		"something else as its DER": {[]entry{entryWith(&fail, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))}, Failed, "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkEntries("guard.fencedlease.io", tc.entries, noon)
			if got.Level != tc.level || !strings.Contains(got.Message, tc.says) || (got.Remedy == "") != (tc.level == OK) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestCalled(t *testing.T) {
	c := &Checker{namespace: "prod"}
	configmaps := schema.GroupResource{Resource: "configmaps"}
	internal := func(what string) error {
		return apierrors.NewInternalError(errors.New("failed calling webhook: " + what))
	}
	for name, tc := range map[string]struct {
		err    error
		level  Level
		remedy string
	}{
		"answered":       {nil, OK, ""},
		"went past":      {errNotCalled, Failed, "selects this namespace"},
		"may not":        {apierrors.NewForbidden(configmaps, "", errors.New("no")), Warning, "who may create configmaps in namespace prod"},
		"no namespace":   {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "prod"), Warning, "a namespace that exists"},
		"not trusted":    {internal("tls: failed to verify certificate: x509: unknown authority"), Failed, "caBundle"},
		"no Service":     {internal(`service "fencedlease-webhook" not found`), Failed, "the Service"},
		"no Pods":        {internal(`no endpoints available for service "fencedlease-webhook"`), Failed, "no replica"},
		"nobody listens": {internal("dial tcp: connect: connection refused"), Failed, "does not reach the operator"},
		"too slow":       {internal("context deadline exceeded"), Failed, "does not reach the operator"},
		"something else": {internal("EOF"), Failed, "the operator's log"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.called(checkGuard, "configmaps", tc.err); got.Level != tc.level || !strings.Contains(got.Remedy, tc.remedy) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestManifest: two documents, of which kubectl makes sense.
func TestManifest(t *testing.T) {
	text, err := manifest{name: "n", namespace: "prod", user: "ann", rights: []right{{Group: "g", Resource: "r", Subresource: "s", Name: "x", Verb: "get"}}}.yaml()
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(text, "---\n")
	for i, kind := range []string{"Role", "RoleBinding"} {
		var object struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
			Rules            []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
		}
		if err := yaml.Unmarshal([]byte(documents[i]), &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind != kind || object.Metadata.Namespace != "prod" || object.Metadata.Name != "n" {
			t.Errorf("%+v", object)
		}
		if i == 0 && (len(object.Rules) != 1 || object.Rules[0].Resources[0] != "r/s" || object.Rules[0].ResourceNames[0] != "x") {
			t.Errorf("the rules are %+v", object.Rules)
		}
	}
	if cluster, err := (manifest{name: "n", user: "ann"}).yaml(); err != nil || !strings.Contains(cluster, "kind: ClusterRoleBinding") || strings.Contains(cluster, "namespace") {
		t.Errorf("%v\n%s", err, cluster)
	}
}

func TestSound(t *testing.T) {
	if !Sound([]Result{ok("a", ""), warning("b", "", "")}) || Sound([]Result{ok("a", ""), failed("b", "", "")}) {
		t.Error("a warning is sound, a failure is not")
	}
}
