package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/fence"
)

// TestEveryReasonIsExplained: whatever package fence may refuse with.
func TestEveryReasonIsExplained(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../fence/refusal.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []fence.Reason
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, fence.Reason(value))
		}
		return true
	})
	if len(declared) != len(reasons) || len(remedies) != len(reasons) {
		t.Errorf("%d reasons are declared, %d listed, %d have a remedy", len(declared), len(reasons), len(remedies))
	}
	for _, reason := range declared {
		if r, ok := remedies[reason]; !ok || !slices.Contains(reasons, reason) || r.code == 0 || r.means == "" || r.remedy == "" {
			t.Errorf("%s is not explained", reason)
		}
		if got := reasonsIn("Error from server (" + string(reason) + "): no"); len(got) != 1 || got[0] != reason {
			t.Errorf("%s is not recognized: %v", reason, got)
		}
	}
}

func TestExplanationsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []fence.Reason
	}{
		"a line of kubectl's":        {"Error from server (FencingTokenStale): admission webhook …", []fence.Reason{fence.ReasonStale}},
		"several, each once":         {"a (FencingTokenStale)\nb (FencedLeaseNotFound)\nc (FencingTokenStale)", []fence.Reason{fence.ReasonStale, fence.ReasonNotFound}},
		"a log line in JSON":         {`{"level":"error","msg":"write","err":"FenceUnavailable: try again"}`, []fence.Reason{fence.ReasonUnavailable}},
		"a Status":                   {`{"kind":"Status","code":412,"reason":"FencingTokenStale"}`, []fence.Reason{fence.ReasonStale}},
		"a Status in YAML":           {"kind: Status\ncode: 428\nreason: FencingTokenRequired\n", []fence.Reason{fence.ReasonRequired}},
		"a Status with words around": {`refused: {"reason":"LeaseConflict","code":422} (final)`, []fence.Reason{fence.ReasonLeaseConflict}},
		"nothing but a code":         {"HTTP/1.1 412 Precondition Failed", []fence.Reason{fence.ReasonStale}},
		"a code that may be others'": {"HTTP 422 Unprocessable Entity", nil},
		"a number that is no code":   {"wrote 41200 bytes", nil},
		"a reason of others":         {"Error from server (Conflict): try again", nil},
		"a reason that is not ours":  {"FencingTokenWhatever", nil},
		"the name of a kind":         {`FencedLease "payments" is fine`, nil},
		"half a JSON":                {`{"reason": "FencingTok`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []fence.Reason
			for _, e := range explanationsOf(tc.text) {
				got = append(got, e.Reason)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestExplanationsOfAStatus(t *testing.T) {
	got := explanationsOf(`{"code":412,"reason":"FencingTokenStale","message":"no","details":{"causes":[
		{"reason":"PresentedToken","message":"1"},{"reason":"MarkToken","message":"2"},{"reason":"CurrentToken","message":"3"},
		{"reason":"Holder","message":"ann"},{"reason":"TokenHolder","message":"pod/1"}]}}`)
	if len(got) != 1 {
		t.Fatalf("%d explanations", len(got))
	}
	want := []string{
		"the write presented token 1", "the object was last written with token 2", "the current token is 3",
		`the holder of the Lease is "ann"`, "the token was minted to pod/1",
	}
	if facts := got[0].facts(); !slices.Equal(facts, want) {
		t.Errorf("%q, want %q", facts, want)
	}
	if got[0].Message != "no" || got[0].Code != 412 {
		t.Errorf("%+v", got[0])
	}
}
