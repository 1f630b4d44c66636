package soundness

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The webhooks that have to be there, by kind of configuration.
var (
	mutating   = []string{"mint.fencedlease.io", "stamp.fencedlease.io"}
	validating = []string{"lease-check.fencedlease.io", "lease-delete.fencedlease.io", "guard.fencedlease.io"}
)

// expiresSoon is how long before its end a certificate is worth a warning.
const expiresSoon = 7 * 24 * time.Hour

// entry is a webhook of a configuration, whichever its kind.
type entry struct {
	configuration string
	name          string
	client        admissionv1.WebhookClientConfig
	policy        *admissionv1.FailurePolicyType
}

// webhooks: the configurations have all entries, and each is as it must be.
func (c *Checker) webhooks(ctx context.Context) []Result {
	const check = "webhook configurations"
	entries, err := c.entries(ctx)
	if apierrors.IsForbidden(err) {
		return []Result{warning(check, "not looked at: "+err.Error(), "ask somebody who may list them, such as an administrator")}
	}
	if err != nil {
		return []Result{failed(check, err.Error(), "try again")}
	}
	var results []Result
	for _, name := range slices.Concat(mutating, validating) {
		results = append(results, checkEntries(name, entries[name], time.Now()))
	}
	return results
}

// entries are all webhooks of the cluster, by name: a configuration may have any
// name itself.
func (c *Checker) entries(ctx context.Context) (map[string][]entry, error) {
	found := map[string][]entry{}
	mutating := &admissionv1.MutatingWebhookConfigurationList{}
	if err := c.client.List(ctx, mutating); err != nil {
		return nil, err
	}
	for _, configuration := range mutating.Items {
		for _, w := range configuration.Webhooks {
			found[w.Name] = append(found[w.Name], entry{configuration.Name, w.Name, w.ClientConfig, w.FailurePolicy})
		}
	}
	validating := &admissionv1.ValidatingWebhookConfigurationList{}
	if err := c.client.List(ctx, validating); err != nil {
		return nil, err
	}
	for _, configuration := range validating.Items {
		for _, w := range configuration.Webhooks {
			found[w.Name] = append(found[w.Name], entry{configuration.Name, w.Name, w.ClientConfig, w.FailurePolicy})
		}
	}
	return found, nil
}

// checkEntries: there is one entry of that name, it fails closed, and whom it
// trusts is set and good for a while.
func checkEntries(name string, entries []entry, now time.Time) Result {
	check := "webhook " + name
	switch len(entries) {
	case 0:
		return failed(check, "no webhook configuration has it", installed)
	case 1:
	default:
		var names []string
		for _, e := range entries {
			names = append(names, e.configuration)
		}
		return warning(check, "several webhook configurations have it: "+strings.Join(names, ", "),
			"delete those of an installation that is gone: the API server asks each, and all must admit")
	}
	e := entries[0]
	if e.policy != nil && *e.policy != admissionv1.Fail {
		return failed(check, fmt.Sprintf("its failurePolicy is %s: writes pass unchecked while the operator is away", *e.policy), "set it to Fail")
	}
	if len(e.client.CABundle) == 0 {
		return failed(check, "its caBundle is empty, so the API server does not trust the operator's certificate",
			"the operator fills it in when it runs with --cert-rotation: see its log; else set it yourself")
	}
	end, err := endOf(e.client.CABundle, now)
	switch {
	case err != nil:
		return failed(check, "its caBundle cannot be used: "+err.Error(), "set it to the authority of the operator's certificate, in PEM")
	case end.Before(now):
		return failed(check, "the certificates of its caBundle have expired, the last on "+end.Format(time.DateOnly),
			"renew them; with --cert-rotation the operator does it: see its log")
	case end.Sub(now) < expiresSoon:
		return warning(check, "the certificates of its caBundle expire on "+end.Format(time.DateOnly),
			"renew them; with --cert-rotation the operator does it in time")
	}
	return ok(check, "in "+e.configuration+", fails closed, trusts certificates until "+end.Format(time.DateOnly))
}

// endOf is when the last certificate of a bundle expires that is valid already.
func endOf(bundle []byte, now time.Time) (time.Time, error) {
	var end time.Time
	found := false
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, err
		}
		found = true
		if !certificate.NotBefore.After(now) && certificate.NotAfter.After(end) {
			end = certificate.NotAfter
		}
	}
	switch {
	case !found:
		return time.Time{}, errors.New("it has no certificate in PEM")
	case end.IsZero():
		return time.Time{}, errors.New("none of its certificates is valid yet")
	}
	return end, nil
}
