package cluster

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestInstall(t *testing.T) {
	ctx := t.Context()
	c, err := Start(ctx, Options{NoControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})

	labeled := func(object *unstructured.Unstructured) bool {
		if object.GetKind() == "Service" {
			object.SetLabels(map[string]string{"patched": "true"})
		}
		return true
	}
	if err := c.Install(ctx, Without("FlowSchema"), labeled); err != nil {
		t.Fatal(err)
	}

	t.Run("leaves out the Deployment and what it is told to", func(t *testing.T) {
		got := kubectl(ctx, t, c, "get", "deployments,flowschemas", "--all-namespaces", "--output=name")
		if strings.Contains(got, "fencedlease") {
			t.Errorf("got\n%s", got)
		}
	})

	t.Run("applies patches", func(t *testing.T) {
		if got := kubectl(ctx, t, c, "get", "service", webhookService, "--namespace="+Namespace, "--show-labels"); !strings.Contains(got, "patched=true") {
			t.Errorf("got %q", got)
		}
	})

	t.Run("serves the API", func(t *testing.T) {
		kubectl(ctx, t, c, "create", "--filename="+filepath.Join(c.root, "config", "samples", "fencedlease.yaml"))
	})

	t.Run("has webhooks called where the manager will be", func(t *testing.T) {
		for kind, paths := range map[string][]string{
			"mutating":   {"/mint", "/stamp"},
			"validating": {"/guard", "/lease-check"},
		} {
			got := kubectl(ctx, t, c, "get", kind+"webhookconfiguration", "fencedlease", "--output=jsonpath={.webhooks[*].clientConfig}")
			for _, path := range paths {
				if !strings.Contains(got, `"url":"https://`+address(c.webhook.port)+path+`"`) {
					t.Errorf("%s: no %s in %s", kind, path, got)
				}
			}
		}
	})

	t.Run("can be done again, to complete it", func(t *testing.T) {
		if err := c.Install(ctx); err != nil {
			t.Fatal(err)
		}
		kubectl(ctx, t, c, "get", "flowschema", "fencedlease")
	})

	// What it leaves out is checked against a real API server all the same, with
	// the warnings that the namespace's Pod Security level gives.
	t.Run("config/default is valid as it is", func(t *testing.T) {
		out, err := c.Kubectl(ctx, "apply", "--server-side", "--dry-run=server", "--force-conflicts", "--kustomize="+filepath.Join(c.root, "config", "default"))
		if err != nil {
			t.Fatal(err)
		}
		if out.ExitCode != 0 || out.Stderr != "" {
			t.Errorf("exit status %d\n%s", out.ExitCode, out.Stderr)
		}
	})
}

// kubectl runs a command that must succeed and returns its output.
func kubectl(ctx context.Context, t *testing.T, c *Cluster, args ...string) string {
	t.Helper()
	out, err := c.mustKubectl(ctx, "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
