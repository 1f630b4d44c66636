package webhooks

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// shelf holds what the registrar reads and writes, as an API server does.
type shelf struct {
	client.Client

	secret     []byte // ca.crt
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
	refuse     error // an update of the mutating ones
	updates    int
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch o := object.(type) {
	case *corev1.Secret:
		o.Data = map[string][]byte{"ca.crt": s.secret}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		s.mutating.DeepCopyInto(o)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		if s.validating == nil {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		s.validating.DeepCopyInto(o)
	}
	return nil
}

func (s *shelf) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	s.updates++
	switch o := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		if s.refuse != nil {
			return s.refuse
		}
		s.mutating = o
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		s.validating = o
	}
	return nil
}

// bundled is a configuration of two webhooks that trust this.
func bundled(bundle []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{
		{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}},
		{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}},
	}}
}

// One authority takes the place of another. That is over after an hour, whoever leads.
func TestAuthorityIsReplaced(t *testing.T) {
	before, after, foreign := newAuthority(t).pem, newAuthority(t).pem, newAuthority(t).pem
	both := slices.Concat(after, before)
	s := &shelf{secret: after, mutating: bundled(before)}
	for _, step := range []struct {
		name    string
		at      time.Duration // since the beginning
		change  func()
		want    []byte
		again   time.Duration
		updates int
	}{
		{name: "both are trusted", want: both, again: overlap, updates: 1},
		{name: "nothing to do", at: time.Minute, want: both, again: overlap - time.Minute},
		{name: "a new leader does not begin anew", at: 50 * time.Minute, want: both, again: 10 * time.Minute},
		{name: "the earlier one, taken off by hand, stays off", at: 51 * time.Minute, change: func() {
			s.mutating.Webhooks[0].ClientConfig.CABundle = after
			s.mutating.Webhooks[1].ClientConfig.CABundle = after
		}, want: after, again: 9 * time.Minute},
		{name: "it is back", at: 52 * time.Minute, change: func() {
			s.mutating.Webhooks[0].ClientConfig.CABundle = both
			s.mutating.Webhooks[1].ClientConfig.CABundle = both
		}, want: both, again: 8 * time.Minute},
		{name: "the hour is over", at: time.Hour, want: after, updates: 1},
		{name: "a foreign one is taken off at once", at: 2 * time.Hour, change: func() { s.mutating.Webhooks[1].ClientConfig.CABundle = slices.Concat(after, foreign) }, want: after, updates: 1},
		{name: "it is even where nobody knows since when", at: 3 * time.Hour, change: func() { s.mutating.Annotations[annotationSince] = "yesterday" }, want: after, again: overlap, updates: 1},
		{name: "a time that is yet to come counts for nothing", at: 3 * time.Hour, change: func() { s.mutating.Annotations[annotationSince] = "2199-01-01T00:00:00Z" }, want: after, again: overlap, updates: 1},
		{name: "the next one", at: 5 * time.Hour, change: func() { s.secret = foreign }, want: slices.Concat(foreign, after), again: overlap, updates: 1},
		{name: "a Secret without one", at: 5 * time.Hour, change: func() { s.secret = nil }, want: slices.Concat(foreign, after)},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.change != nil {
				step.change()
			}
			s.updates = 0
			r := &registrar{client: s, now: func() time.Time { return today.Add(step.at) }}
			got, err := r.Reconcile(t.Context(), reconcile.Request{})
			if err != nil || got.RequeueAfter != step.again || s.updates != step.updates {
				t.Errorf("again after %s with %d updates, want %s and %d: %v", got.RequeueAfter, s.updates, step.again, step.updates, err)
			}
			for i := range s.mutating.Webhooks {
				if got := s.mutating.Webhooks[i].ClientConfig.CABundle; !bytes.Equal(got, step.want) {
					t.Errorf("webhook %d trusts\n%s\nwant\n%s", i, got, step.want)
				}
			}
		})
	}
}

// A conflict is tried again soon; another error is told, even beside a conflict.
func TestAuthorityIsNotRegistered(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "fencedlease", errors.New("somebody was faster"))
	for name, tc := range map[string]struct {
		refuse error
		again  time.Duration
		err    bool
	}{
		"a conflict":         {refuse: conflict, again: conflictPause},
		"a right is missing": {refuse: apierrors.NewForbidden(schema.GroupResource{}, "fencedlease", errors.New("no")), err: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{secret: newAuthority(t).pem, mutating: bundled(nil), refuse: tc.refuse, validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
				Webhooks: []admissionregistrationv1.ValidatingWebhook{{}},
			}}
			r := &registrar{client: s, now: func() time.Time { return today }}
			got, err := r.Reconcile(t.Context(), reconcile.Request{})
			if (err != nil) != tc.err || got.RequeueAfter != tc.again {
				t.Errorf("again after %s: %v", got.RequeueAfter, err)
			}
			if len(s.validating.Webhooks[0].ClientConfig.CABundle) == 0 {
				t.Error("the other configuration was left out")
			}
		})
	}
}

func TestJoinedAuthorities(t *testing.T) {
	a, b, c, d, e := newAuthority(t).pem, newAuthority(t).pem, newAuthority(t).pem, newAuthority(t).pem, newAuthority(t).pem
	all := slices.Concat[[]byte]
	for name, tc := range map[string]struct {
		newest, registered, want []byte
		after                    time.Duration
	}{
		"the first":                 {newest: a, want: a},
		"the same":                  {newest: a, registered: a, want: a},
		"the next":                  {newest: b, registered: a, want: all(b, a)},
		"again":                     {newest: b, registered: all(b, a), want: all(b, a)},
		"the one before comes back": {newest: a, registered: all(b, a), want: all(a, b)},
		"as many as there may be":   {newest: e, registered: all(d, c, b, a), want: all(e, d, c, b)},
		"those that ended":          {newest: b, registered: a, want: b, after: 10 * 365 * 24 * time.Hour},
		"what is no certificate":    {newest: a, registered: []byte("none"), want: a},
		"what looks like one":       {newest: a, registered: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), want: a},
		"one after a comment":       {newest: a, registered: all([]byte("# comment\n"), b), want: all(a, b)},
		"without an end of line":    {newest: bytes.TrimSpace(a), registered: b, want: all(a, b)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := join(tc.newest, tc.registered, today.Add(tc.after)); !bytes.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
