package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/fencedlease/fencedlease/fence"
)

// TestHelp: every verb says what it does, at length as well, and shows how.
func TestHelp(t *testing.T) {
	root := newCommand(genericiooptions.NewTestIOStreamsDiscard())
	if len(root.Commands()) < 10 {
		t.Errorf("there are %d verbs", len(root.Commands()))
	}
	for _, cmd := range append(root.Commands(), root) {
		switch {
		case cmd.Name() == "help":
			continue
		case cmd.Short == "" || strings.HasSuffix(cmd.Short, "."):
			t.Errorf("%s: the short help is %q", cmd.Name(), cmd.Short)
		case len(strings.Fields(cmd.Long)) < 25:
			t.Errorf("%s: the long help is %q", cmd.Name(), cmd.Long)
		case strings.Contains(cmd.Long, "\t"):
			t.Errorf("%s: the long help has tabs", cmd.Name())
		}
		wantExamples(t, cmd)
		if usage := cmd.UsageString(); !strings.Contains(usage, "kubectl fence") || cmd.HasParent() && strings.Contains(usage, "--certificate-authority") {
			t.Errorf("%s: the usage is\n%s", cmd.Name(), usage)
		}
	}
}

// wantExamples checks that there are some, each with a comment, indented as one.
func wantExamples(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	if !strings.Contains(cmd.Example, "kubectl fence") {
		t.Errorf("%s has no example", cmd.Name())
	}
	for example := range strings.SplitSeq(cmd.Example, "\n\n") {
		if !strings.HasPrefix(example, "  # ") || !strings.Contains(example, "\n  ") {
			t.Errorf("%s: an example is %q", cmd.Name(), example)
		}
	}
}

// TestReach: the static part of the guard's reach is the one that the webhook
// configuration has.
func TestReach(t *testing.T) {
	data, err := os.ReadFile("../../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	expression := ""
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var configuration struct {
			Webhooks []struct {
				Name            string
				MatchConditions []struct{ Name, Expression string }
			}
		}
		if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
			t.Fatal(err)
		}
		for _, webhook := range configuration.Webhooks {
			for _, condition := range webhook.MatchConditions {
				if webhook.Name == "guard.fencedlease.io" && condition.Name == "in-reach" {
					expression = condition.Expression
				}
			}
		}
	}
	groups, rest, found := strings.Cut(expression, "]")
	if !found {
		t.Fatalf("the guard's condition is %q", expression)
	}
	for _, group := range builtInGroups {
		if !strings.Contains(groups, "'"+group+"'") {
			t.Errorf("the webhook configuration takes %s for a group of custom resources", group)
		}
	}
	if n := strings.Count(groups, "'") / 2; n != len(builtInGroups) {
		t.Errorf("the webhook configuration has %d built-in groups, the plugin %d", n, len(builtInGroups))
	}
	if !strings.Contains(rest, "'/configmaps', '/secrets']") {
		t.Errorf("the webhook configuration has other built-in kinds: %s", rest)
	}
	for resource, want := range map[schema.GroupResource]bool{
		{Resource: "configmaps"}:                                   true,
		{Resource: "secrets"}:                                      true,
		{Resource: "pods"}:                                         false,
		{Group: "apps", Resource: "deployments"}:                   false,
		{Group: "coordination.k8s.io", Resource: "leases"}:         false,
		{Group: "fencedlease.io", Resource: "fencedleases"}:        false,
		{Group: "gateway.networking.k8s.io", Resource: "gateways"}: true,
		{Group: "example.com", Resource: "configmaps"}:             true,
	} {
		if got := guardable(resource); got != want {
			t.Errorf("guardable(%s) = %v", resource, got)
		}
	}
}

func TestToken(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		env  string
		want fence.Token
		says string
	}{
		"nothing":               {nil, "", fence.None, ""},
		"flag":                  {[]string{"--token=7"}, "", 7, ""},
		"environment":           {nil, "8", 8, ""},
		"flag over environment": {[]string{"--token=7"}, "8", 7, ""},
		"an empty flag":         {[]string{"--token="}, "8", 0, `--token is ""`},
		"a malformed variable":  {nil, "08", 0, `$FENCING_TOKEN is "08"`},
		"too large":             {[]string{"--token=9007199254740992"}, "", 0, "a fencing token is an integer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(tokenVariable, tc.env)
			cmd, token := &cobra.Command{}, &tokenFlag{}
			token.addTo(cmd.Flags())
			if err := cmd.ParseFlags(tc.args); err != nil {
				t.Fatal(err)
			}
			got, err := token.get()
			if got != tc.want || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func TestConfirmed(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes \n": true, "n\n": false, "\n": false, "": false, "y": false, "yesterday\n": false} {
		if got := confirmed(strings.NewReader(answer)); got != want {
			t.Errorf("confirmed(%q) = %v", answer, got)
		}
	}
}
