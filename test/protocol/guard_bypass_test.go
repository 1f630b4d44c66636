package protocol

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// because gives a reason for breaking the glass, in the annotation.
func because(reason string) func(client.Object) {
	return suite.Annotation(v1alpha1.AnnotationBypass, reason)
}

// byExtra is an actor that gives the reason in the user extra, and presents a
// token beside it unless that is "". Somebody else lets it impersonate itself.
func byExtra(w *suite.World, a *suite.Actor, username, reason, token string) *suite.Actor {
	w.T.Helper()
	extra := map[string][]string{v1alpha1.ExtraBypass: {reason}}
	if token != "" {
		extra[v1alpha1.ExtraToken] = []string{token}
	}
	if username == "" {
		return a.WithExtra(extra)
	}
	config := rest.CopyConfig(a.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: username, Extra: extra}
	return w.Actor(username, config)
}

const (
	broken    = "admitted by break-glass, which is recorded; without it: "
	mayNot    = "break-glass needs the verb bypass on fencedleases.fencedlease.io, which this user does not have"
	keepsMark = "a break-glass write leaves the mark exactly as it was"
)

// brokenGlass is a row that break-glass overrides: what it takes to meet it.
type brokenGlass struct {
	code   int32
	reason fence.Reason
	mark   string // of the ConfigMap account
	spec   func(*v1alpha1.FencedLeaseSpec)
	before func(*scene) // after the ConfigMap was written

	// change meets the row without a change of the token; claim is the token
	// that a delete presents to meet it.
	change func(try string) func(client.Object)
	claim  string
}

func data(try string) func(client.Object) { return suite.Balance(try) }

var bypassable = map[string]brokenGlass{
	"G2": {code: 422, reason: fence.ReasonNotFound, mark: "2", change: data, before: func(s *scene) {
		s.Must(s.Admin.Delete(s.Ctx, s.GetFencedLease("payments")))
	}},
	"G5":              {code: 422, reason: fence.ReasonRegressed, mark: "2", change: data, before: (*scene).loseCounter},
	"G7, current":     {code: 428, reason: fence.ReasonRequired, mark: "2", change: data},
	"G7, not current": {code: 412, reason: fence.ReasonStale, mark: "1", change: data},
	"G9": {code: 412, reason: fence.ReasonStale, mark: "1", claim: "1", change: func(try string) func(client.Object) {
		return write("1/" + try)
	}},
	"G10": {code: 412, reason: fence.ReasonStale, mark: "2", spec: strictlyNewer, change: func(try string) func(client.Object) {
		return write("2/" + try)
	}},
}

// TestBreakGlass: each row that it overrides, with the permission and without,
// with a reason and without.
func TestBreakGlass(t *testing.T) {
	t.Parallel()
	for row, tc := range bypassable {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			var untouched []string
			if tc.mark == "1" {
				untouched = []string{"account"}
			}
			s := secondTerm(t, tc.spec, untouched...)
			if tc.mark == "2" {
				s.Guarded("account", "payments", 2)
			}
			if tc.before != nil {
				tc.before(s)
			}
			able, warnings := s.Pod("able").Warned() // a wildcard role: every verb
			unable := s.User("unable")
			refused := func(err error, parts ...string) {
				t.Helper()
				suite.Refused(t, err, tc.code, tc.reason, parts...)
			}

			refused(able.Modify("account", tc.change("no-reason")))
			refused(able.Modify("account", tc.change("blank"), because("  ")))
			refused(s.Admin.Modify("account", tc.change("admin")))
			refused(unable.Modify("account", tc.change("unable")))
			refused(unable.Modify("account", tc.change("unable"), because("please")), mayNot)
			s.untouched("account", tc.mark)
			warnings.Want(t)

			suite.Admitted(t, able.Modify("account", tc.change("1"), because("ticket 1")))
			warnings.Want(t, broken+string(tc.reason)+": ")
			wantMark(s.World, "account", tc.mark)
			suite.Admitted(t, s.Admin.Modify("account", tc.change("2"), because("ticket 2")))
			wantMark(s.World, "account", tc.mark)

			// A stored reason counts for nothing afterwards, nor does its removal.
			refused(able.Modify("account", tc.change("3")))
			refused(able.Modify("account", tc.change("3"), because("ticket 2")))
			refused(able.Modify("account", tc.change("3"), suite.WithoutAnnotation(v1alpha1.AnnotationBypass)))
			suite.Admitted(t, able.Modify("account", tc.change("3"), because("ticket 3")))
			warnings.Want(t, broken)

			// The mark stays exactly as it was.
			suite.Refused(t, able.Modify("account", tc.change("4"), because("ticket 4"), withoutToken), 422, fence.ReasonInvalid, keepsMark, `must be "`+tc.mark+`"`)
			wantMark(s.World, "account", tc.mark)
			warnings.Want(t)
		})
	}
}

// TestBreakGlassDelete: a delete gives its reason in the user extra.
func TestBreakGlassDelete(t *testing.T) {
	t.Parallel()
	for row, tc := range bypassable {
		if row == "G2" || row == "G10" { // a delete meets neither
			continue
		}
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			s := secondTerm(t, tc.spec, "stale")
			s.Guarded("fresh", "payments", 2)
			name := map[string]string{"1": "stale", "2": "fresh"}[tc.mark]
			if tc.before != nil {
				tc.before(s)
			}
			unable := s.User("unable")
			code, reason := tc.code, tc.reason
			if row == "G7, not current" { // a delete leaves no token
				code, reason = 428, fence.ReasonRequired
			}
			suite.Refused(t, remove(s.World, byExtra(s.World, s.Admin, "", "", tc.claim), name), code, reason)
			suite.Refused(t, remove(s.World, byExtra(s.World, s.Admin, unable.Name, "please", tc.claim), name), code, reason, mayNot)
			two := s.Admin.WithExtra(map[string][]string{v1alpha1.ExtraBypass: {"ticket 1", "ticket 2"}})
			if tc.claim == "" {
				suite.Refused(t, remove(s.World, two, name), code, reason)
			}
			s.untouched(name, tc.mark)
			actor, warnings := byExtra(s.World, s.Admin, "", "ticket 1", tc.claim).Warned()
			suite.Admitted(t, remove(s.World, actor, name))
			warnings.Want(t, broken+string(reason)+": ")
		})
	}
}

// TestBreakGlassStatus: so does a status write, which cannot set annotations.
func TestBreakGlassStatus(t *testing.T) {
	t.Parallel()
	s := accounts(t, nil)
	unable := s.User("unable")
	// The extra is for writes that have no annotation; and the other way round.
	suite.Refused(t, report(s.World, s.Pod("able"), "sealed", paid("1"), because("ticket 1")), 428, fence.ReasonRequired)
	suite.Refused(t, byExtra(s.World, s.Admin, "", "ticket 1", "").Update(s.Ctx, getLedgerWith(s, field("1", "spec", "balance"))), 428, fence.ReasonRequired)
	suite.Refused(t, report(s.World, byExtra(s.World, s.Admin, unable.Name, "please", ""), "sealed", paid("1")), 428, fence.ReasonRequired, mayNot)
	suite.Refused(t, report(s.World, byExtra(s.World, s.Admin, "", " ", ""), "sealed", paid("1")), 428, fence.ReasonRequired)
	wantPaid(s.World, "sealed", "", "3")

	actor, warnings := byExtra(s.World, s.Admin, "", "ticket 1", "").Warned()
	suite.Admitted(t, report(s.World, actor, "sealed", paid("1")))
	warnings.Want(t, broken+"FencingTokenRequired: ")
	suite.Admitted(t, report(s.World, byExtra(s.World, s.Admin, "", "ticket 2", "2"), "untouched", paid("1")))
	wantPaid(s.World, "sealed", "1", "3")
	wantPaid(s.World, "untouched", "1", "2")
}

func getLedgerWith(s *scene, change ...func(client.Object)) client.Object {
	u := getLedger(s.World, "sealed")
	for _, c := range change {
		c(u)
	}
	return u
}

// TestBreakGlassChangesTheMark: not by a claim either: raised, lowered, or by the
// user extra that stamp stores.
func TestBreakGlassChangesTheMark(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	s.first.Acquire("payments", "first")
	able := s.Pod("able")
	suite.Refused(t, able.Modify("account", suite.Token("1"), because("ticket 1")), 422, fence.ReasonInvalid, `must be "2"`, keepsMark)
	suite.Refused(t, s.presents("1").Modify("account", suite.Balance("1"), because("ticket 1")), 422, fence.ReasonInvalid, `must be "2"`, keepsMark)
	suite.Refused(t, able.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("2"), because("ticket 1"))), 422, fence.ReasonInvalid,
		"must have no annotation", keepsMark)
	s.untouched("account", "2")
	// A create without a token, and the label's removal, leave no wrong mark.
	suite.Admitted(t, able.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), because("ticket 1"))))
	suite.Admitted(t, able.Modify("account", suite.Unguarded, because("ticket 2")))
}

// TestBreakGlassOverridesNothingElse: a reason and the permission do not help
// where a token is malformed, moved, forged or not to be compared.
func TestBreakGlassOverridesNothingElse(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	able := s.Pod("able")
	late := &v1alpha1.FencedLease{Spec: v1alpha1.FencedLeaseSpec{LeaseName: "payments"}}
	late.Namespace, late.Name = s.Namespace, "late"
	s.Must(s.Admin.Create(s.Ctx, late))

	suite.Refused(t, able.Modify("account", suite.Token("0"), because("ticket 1")), 422, fence.ReasonInvalid, `"0"`)
	suite.Refused(t, able.Modify("account", suite.GuardedBy("orders"), because("ticket 1")), 422, fence.ReasonInvalid, "in one step")
	suite.Refused(t, able.Modify("account", suite.Token("3"), because("ticket 1")), 403, fence.ReasonNeverIssued)
	suite.Refused(t, able.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("late"), because("ticket 1"))), 422, fence.ReasonLeaseConflict)
	s.untouched("account", "1")
	suite.Admitted(t, able.Modify("account", suite.Balance("1"), because("ticket 1")))
}

// TestBreakGlassIsRecorded: an Event with the reason, and the metric.
func TestBreakGlassIsRecorded(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	able := s.Pod("able")
	before := unclaimed(s.World, "bypass", "false")
	dryBefore := unclaimed(s.World, "bypass", "true")

	// A dry run gets the same verdict and leaves no trace but its count.
	cm := s.GetConfigMap("account")
	suite.Balance("1")(cm)
	because("only a rehearsal")(cm)
	suite.Admitted(t, able.Update(s.Ctx, cm, client.DryRunAll))
	s.untouched("account", "1")
	if got := unclaimed(s.World, "bypass", "true"); got <= dryBefore {
		t.Errorf("dry runs counted: %v, before %v", got, dryBefore)
	}

	// Events are bounded in rate: the write is repeated until one gets through.
	event := awaitEvent(s.World, "FenceBypassed", "account", func(try string) error {
		return able.Modify("account", suite.Balance(try), because("ticket "+try))
	})
	if event.Type != "Warning" || event.Regarding.Kind != "ConfigMap" || event.Regarding.APIVersion != "v1" || event.Action != "Bypass" {
		t.Errorf("%+v", event)
	}
	wantNote(t, event, "user system:serviceaccount:"+s.Namespace+":worker broke the glass of FencedLease payments: ticket ", "(refused otherwise: FencingTokenStale)")
	if got := unclaimed(s.World, "bypass", "false"); got <= before {
		t.Errorf("counted: %v, before %v", got, before)
	}
	for _, event := range eventsOf(s.World) {
		if event.Reason == "FenceBypassed" {
			wantNoNote(t, event, "rehearsal")
		}
	}
}

// Each use has an Event of its own, with its reason, also where one object is
// written twice.
func TestBreakGlassAgain(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	able := s.Pod("able")
	for _, reason := range []string{"ticket A", "ticket B"} {
		try := 0
		s.Eventually("Event of "+reason, func() error {
			try++ // Events are bounded in rate, all tests together
			s.Must(able.Modify("account", suite.Balance(reason), because(fmt.Sprintf("%s-%d", reason, try))))
			for _, event := range eventsOf(s.World) {
				if event.Reason == "FenceBypassed" && strings.Contains(event.Note, reason) && event.Regarding.UID == s.GetConfigMap("account").UID {
					return nil
				}
			}
			return errors.New("there is none")
		})
	}
}
