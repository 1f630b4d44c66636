package webhooks

import (
	"context"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/bounded"
)

// How a write was admitted, in the metric.
const (
	admittedNo       = "no"
	admittedYes      = "yes"
	admittedByWarn   = "warn"
	admittedByBypass = "bypass"
)

// recorder makes verdicts visible: a count for each, and an Event, bounded in rate,
// for each write whose token was not in order, whether it was admitted or not.
type recorder struct {
	events   events.EventRecorder
	bypasses *rate.Limiter // apart, so that many of one kind hide none of another
	warnings *rate.Limiter
	refusals *rate.Limiter
}

// newRecorder records at most one bypass and one warning a second, after a burst of
// 20 each. Of refusals it records samples, one in five seconds: a client that was
// fenced off may try again as fast as it can, and each Event is a write.
func newRecorder(to events.EventRecorder) *recorder {
	return &recorder{
		events: to, bypasses: rate.NewLimiter(1, 20), warnings: rate.NewLimiter(1, 20),
		refusals: rate.NewLimiter(0.2, 20),
	}
}

func (r *recorder) record(ctx context.Context, req admission.Request, fencedLease string, v fence.Verdict) {
	admitted, reason := admittedYes, ""
	switch {
	case !v.Allowed():
		admitted, reason = admittedNo, string(v.Refusal.Reason)
	case v.Warned:
		admitted = admittedByWarn
	case v.BypassReason != "":
		admitted = admittedByBypass
	}
	verdicts.WithLabelValues(string(req.Operation), string(v.Row), reason, admitted, dryRun(req)).Inc()
	if isDryRun(req) {
		return
	}
	user := brief(req.UserInfo.Username)
	switch admitted {
	case admittedNo:
		if aboutTokens(v.Refusal.Reason) && r.refusals.Allow() {
			r.event(req, "FenceRefused", "Refuse", "FencedLease %s refused a write by %s: %d %s",
				fencedLease, user, v.Refusal.Code, v.Refusal.Reason)
		}
	case admittedByWarn:
		logAdmitted(ctx, "warn", fencedLease, user, v)
		if r.warnings.Allow() {
			r.event(req, "FenceWarned", "Warn",
				"a write by %s was admitted only because enforcement of FencedLease %s is Warn (refused otherwise: %s)",
				user, fencedLease, v.Refused.Reason)
		}
	case admittedByBypass:
		logAdmitted(ctx, "bypass", fencedLease, user, v)
		if r.bypasses.Allow() {
			r.event(req, "FenceBypassed", "Bypass", "user %s broke the glass of FencedLease %s: %s (refused otherwise: %s)",
				user, fencedLease, brief(v.BypassReason), v.Refused.Reason)
		}
	}
}

// aboutTokens says whether a refusal tells of a writer whose token was not in
// order, and not of an object or an installation that is not.
func aboutTokens(reason fence.Reason) bool {
	switch reason {
	case fence.ReasonStale, fence.ReasonRequired, fence.ReasonNeverIssued:
		return true
	default:
		return false
	}
}

func logAdmitted(ctx context.Context, by, fencedLease, user string, v fence.Verdict) {
	log.FromContext(ctx).Info("admitted although refused", "by", by, "bypassReason", brief(v.BypassReason),
		"refusal", v.Refused.Reason, "fencedLease", fencedLease, "user", user)
}

// event records an Event about the object of a write. With the revision, two
// bypasses of one object are two Events, not one that happened twice.
func (r *recorder) event(req admission.Request, reason, action, note string, args ...any) {
	stored := storedOf(req)
	object := &corev1.ObjectReference{
		APIVersion: schema.GroupVersion{Group: req.Kind.Group, Version: req.Kind.Version}.String(), Kind: req.Kind.Kind,
		Namespace: req.Namespace, Name: stored.Name, UID: stored.UID, ResourceVersion: stored.ResourceVersion,
	}
	r.events.Eventf(object, nil, corev1.EventTypeWarning, reason, action, note, args...)
}

// brief cuts what a user chose to a length that fits an Event, a log line or an
// audit record, several times over.
func brief(s string) string { return bounded.String(s, 256) }
