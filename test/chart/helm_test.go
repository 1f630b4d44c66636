package chart

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// What the tests install, and where: not what the examples say, so that nothing
// depends on that.
const (
	release   = "fl"
	namespace = "fence"
)

// path is that of a file of the repository.
func path(t *testing.T, elements ...string) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root}, elements...)...)
}

// chartDir is the directory of the chart.
func chartDir(t *testing.T) string {
	t.Helper()
	return path(t, "charts", "fencedlease")
}

// helm runs the real helm. It knows nothing of the user's own configuration.
func helm(ctx context.Context, t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	program := path(t, "bin", "tools", "helm")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; `make bin/tools/helm` builds it", err)
	}
	var out, errOut bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Stdout, command.Stderr = &out, &errOut
	home := t.TempDir()
	command.Env = append(os.Environ(), "HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG="+kubeconfig())
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, out.String(), errOut.String())
	}
	return out.String(), nil
}

// kubeconfig is that of the cluster, once there is one.
func kubeconfig() string {
	if plane == nil {
		return os.DevNull
	}
	return plane.KubeconfigPath
}

// template is what the chart renders with these arguments.
func template(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return helm(t.Context(), t, append([]string{"template", release, chartDir(t), "--namespace=" + namespace}, args...)...)
}

// objects are those of a stream of YAML documents, by kind/name.
type objects map[string]*unstructured.Unstructured

// render is what the chart renders, which must be possible.
func render(t *testing.T, args ...string) objects {
	t.Helper()
	text, err := template(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, text)
}

// parse fails the test if two objects have one name.
func parse(t *testing.T, text string) objects {
	t.Helper()
	found := objects{}
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err == nil {
			document, err = yaml.ToJSON(document)
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if string(document) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(document); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		key := object.GetKind() + "/" + object.GetName()
		if found[key] != nil {
			t.Fatalf("there are two %s", key)
		}
		found[key] = object
	}
}

// get is an object that has to be there.
func (o objects) get(t *testing.T, key string) *unstructured.Unstructured {
	t.Helper()
	if o[key] == nil {
		t.Fatalf("there is no %s", key)
	}
	return o[key]
}

// field is what is at a path like spec.template.spec.containers.0.image; nil if
// there is nothing.
func field(object any, path string) any {
	if u, ok := object.(*unstructured.Unstructured); ok {
		object = u.Object
	}
	for key := range strings.SplitSeq(path, "|") {
		switch at := object.(type) {
		case map[string]any:
			object = at[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(at) {
				return nil
			}
			object = at[i]
		default:
			return nil
		}
	}
	return object
}
