package fence_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
)

// checkRefusal asserts what a client sees of a refusal. A client-go client
// tries again by itself only where a 503 says when.
func checkRefusal(t *testing.T, refusal *fence.Refusal, code int32, reason fence.Reason, says string) {
	t.Helper()
	if refusal == nil {
		t.Fatalf("allowed; want %d %s", code, reason)
	}
	if refusal.Code != code || refusal.Reason != reason {
		t.Errorf("want %d %s, got %d %s: %s", code, reason, refusal.Code, refusal.Reason, refusal.Message)
	}
	if !strings.Contains(refusal.Message, says) {
		t.Errorf("the message should say %q: %s", says, refusal.Message)
	}
	if again := refusal.RetryAfterSeconds > 0; again != (refusal.Code == 503) {
		t.Errorf("a %d has retryAfterSeconds %d", refusal.Code, refusal.RetryAfterSeconds)
	}
}

func checkFacts(t *testing.T, want, got fence.Facts) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want,+got):\n%s", diff)
	}
}

func TestCauses(t *testing.T) {
	cases := map[string]struct {
		facts fence.Facts
		want  []fence.Cause
	}{
		"all that is known": {
			facts: fence.Facts{Presented: 4, Mark: 5, Current: 6, Holder: "anna", Writer: anna},
			want: []fence.Cause{
				{Type: fence.CausePresented, Value: "4"},
				{Type: fence.CauseMark, Value: "5"},
				{Type: fence.CauseCurrent, Value: "6"},
				{Type: fence.CauseHolder, Value: "anna"},
				{Type: fence.CauseWriter, Value: "pod/anna"},
			},
		},
		"what is not known is left out": {
			facts: fence.Facts{Current: 6, Holder: "anna"},
			want: []fence.Cause{
				{Type: fence.CauseCurrent, Value: "6"},
				{Type: fence.CauseHolder, Value: "anna"},
			},
		},
		"nothing is known": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.facts.Causes()); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			checkFacts(t, tc.facts, fence.FactsOf(tc.want))
		})
	}
}

// Whoever sits between the fence and a client may add to the causes.
func TestFactsOfPassesOverWhatIsNoFact(t *testing.T) {
	got := fence.FactsOf([]fence.Cause{
		{Type: fence.CausePresented, Value: "4"},
		{Type: "FieldValueInvalid", Value: "9"},
		{Type: fence.CauseMark, Value: "05"},
		{Type: fence.CauseCurrent, Value: "-6"},
	})
	checkFacts(t, fence.Facts{Presented: 4}, got)
}

func TestKnown(t *testing.T) {
	for reason, want := range map[fence.Reason]bool{
		fence.ReasonStale:             true,
		fence.ReasonFencedLeaseExists: true,
		"Conflict":                    false,
		"":                            false,
	} {
		if got := reason.Known(); got != want {
			t.Errorf("%q is known: %t, want %t", reason, got, want)
		}
	}
}

// A message repeats what a client sent: safely, and not at any length.
func TestMessagesQuoteWhatClientsSend(t *testing.T) {
	cases := map[string]struct {
		token    string
		wantSays string
	}{
		"control characters are escaped": {token: "1\n\x1b[31m", wantSays: `is "1\n\x1b[31m":`},
		"long values are cut":            {token: strings.Repeat("9", 100<<10), wantSays: `9"… (102400 bytes)`},
		"a character that the cut splits": {
			token: strings.Repeat("x", 63) + "é", wantSays: `x\xc3"… (65 bytes)`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for where, request := range map[string]*requestBuilder{
				"the annotation": makeCreate().Token(tc.token),
				"the user extra": makeCreate().Extra(tc.token),
			} {
				verdict := fence.Judge(request.Obj(), makeState().Obj())
				checkRefusal(t, verdict.Refusal, 422, fence.ReasonInvalid, where)
				checkRefusal(t, verdict.Refusal, 422, fence.ReasonInvalid, tc.wantSays)
				if length := len(verdict.Refusal.Message); length > 400 {
					t.Errorf("a message of %d bytes", length)
				}
			}
		})
	}
}
