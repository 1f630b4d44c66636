package protocol

import (
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// malformed are tokens that are none, each with what the message quotes of it.
var malformed = map[string]struct{ token, quoted string }{
	"empty":             {"", `""`},
	"zero":              {"0", `"0"`},
	"negative":          {"-1", `"-1"`},
	"signed":            {"+1", `"+1"`},
	"leading zero":      {"01", `"01"`},
	"fraction":          {"1.0", `"1.0"`},
	"exponent":          {"1e3", `"1e3"`},
	"leading space":     {" 1", `" 1"`},
	"inner space":       {"1 0", `"1 0"`},
	"arabic digit":      {"٣", `"٣"`},
	"above 2^53-1":      {"9007199254740992", `"9007199254740992"`},
	"seventeen digits":  {"10000000000000000", `"10000000000000000"`},
	"words":             {"none", `"none"`},
	"100 KiB of digits": {strings.Repeat("7", 100<<10), `… (102400 bytes)`},
}

const whatTokensAre = "a fencing token is an integer from 1 to 9007199254740991 in base 10"

// TestG1MalformedAnnotation: in the annotation, whether the write creates,
// changes or only relabels the object.
func TestG1MalformedAnnotation(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	s.Must(s.Admin.Create(s.Ctx, s.ConfigMap("free")))

	for name, tc := range malformed {
		t.Run(name, func(t *testing.T) {
			for verb, try := range map[string]func() error{
				"create": func() error {
					return s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token(tc.token)))
				},
				"update": func() error { return s.second.Modify("account", suite.Token(tc.token)) },
				"label":  func() error { return s.second.Modify("free", suite.GuardedBy("payments"), suite.Token(tc.token)) },
			} {
				got := suite.Refused(t, try(), 422, fence.ReasonInvalid, "the annotation "+v1alpha1.AnnotationToken+" is "+quotedStart(tc.quoted), tc.quoted, whatTokensAre)
				if got.Causes[fence.CausePresented] != "" {
					t.Errorf("%s: it presents %s", verb, got.Causes[fence.CausePresented])
				}
				if len(got.Message) > 1000 {
					t.Errorf("%s: a message of %d bytes", verb, len(got.Message))
				}
			}
		})
	}
	s.untouched("account", "1")
	// The twins: a well-formed token passes each of the three.
	suite.Admitted(t, s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"), suite.Token("2"))))
	suite.Admitted(t, s.second.Modify("account", suite.Token("2")))
	suite.Admitted(t, s.second.Modify("free", suite.GuardedBy("payments"), suite.Token("2")))
}

// quotedStart is the beginning of a quoted value: long ones are cut.
func quotedStart(quoted string) string {
	if strings.HasPrefix(quoted, `"`) {
		return quoted
	}
	return `"7777`
}

// TestG1MalformedExtra: in the user extra, for every verb.
func TestG1MalformedExtra(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")

	for name, tc := range malformed {
		t.Run(name, func(t *testing.T) {
			actor := s.presents(tc.token)
			for verb, err := range map[string]error{
				"create": actor.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"))),
				"update": actor.Modify("account", suite.Balance("1")),
				"delete": remove(s.World, actor, "account"),
			} {
				got := suite.Refused(t, err, 422, fence.ReasonInvalid, "the user extra "+v1alpha1.ExtraToken+" is "+quotedStart(tc.quoted), tc.quoted, whatTokensAre)
				if got.Causes[fence.CausePresented] != "" {
					t.Errorf("%s: it presents %s", verb, got.Causes[fence.CausePresented])
				}
				if len(got.Message) > 1000 {
					t.Errorf("%s: a message of %d bytes", verb, len(got.Message))
				}
			}
		})
	}
	s.untouched("account", "1")
	actor := s.presents("2")
	suite.Admitted(t, actor.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("payments"))))
	suite.Admitted(t, actor.Modify("account", suite.Balance("1")))
	suite.Admitted(t, remove(s.World, actor, "account"))
}

// TestG1SeveralExtras: two values are no claim, even if they are equal.
func TestG1SeveralExtras(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	for name, values := range map[string][]string{"equal": {"2", "2"}, "different": {"1", "2"}} {
		t.Run(name, func(t *testing.T) {
			actor := s.Admin.WithExtra(map[string][]string{v1alpha1.ExtraToken: values})
			suite.Refused(t, actor.Modify("account", suite.Balance("1")), 422, fence.ReasonInvalid,
				"the user extra "+v1alpha1.ExtraToken+" must have exactly one value")
			suite.Refused(t, remove(s.World, actor, "account"), 422, fence.ReasonInvalid, "exactly one value")
		})
	}
	s.untouched("account", "1")
	suite.Admitted(t, s.presents("2").Modify("account", suite.Balance("1")))
}

// TestG1BeforeAll: a malformed token is refused as such whatever else is wrong:
// the FencedLease that does not exist, the current claim beside it.
func TestG1BeforeAll(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	suite.Refused(t, s.second.Create(s.Ctx, s.ConfigMap("new", suite.GuardedBy("nobody"), suite.Token("01"))),
		422, fence.ReasonInvalid, `"01"`)
	suite.Refused(t, s.presents("x").Modify("account", suite.Token("2")), 422, fence.ReasonInvalid, `the user extra`, `"x"`)
	s.untouched("account", "1")
	suite.Admitted(t, s.presents("2").Modify("account", suite.Token("2"), suite.Balance("1")))
}

// TestG1Boundaries: the least and the largest token are well-formed. Neither is
// current here, and each is refused for that.
func TestG1Boundaries(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil, "account")
	suite.Refused(t, s.second.Modify("account", suite.Token("9007199254740991")), 403, fence.ReasonNeverIssued, "9007199254740991")
	suite.Refused(t, s.presents("9007199254740991").Modify("account", suite.Balance("1")), 403, fence.ReasonNeverIssued, "9007199254740991")
	suite.Refused(t, s.presents("1").Modify("account", suite.Balance("1")), 412, fence.ReasonStale, "token 1 is stale")
	s.untouched("account", "1")
}
