package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"text/template"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/fencedlease/fencedlease/cmd/kubectl-fence/soundness"
)

// TestKrewManifest: filled in as a release does it, the template is a manifest.
func TestKrewManifest(t *testing.T) {
	data, err := os.ReadFile("krew.yaml")
	if err != nil {
		t.Fatal(err)
	}
	filled := template.Must(template.New("").Funcs(template.FuncMap{
		"addURIAndSha": func(uri, tag string) string {
			return "uri: " + strings.ReplaceAll(uri, "{{ .TagName }}", tag) + "\n    sha256: 00"
		},
	}).Parse(string(data)))
	var text strings.Builder
	if err := filled.Execute(&text, map[string]string{"TagName": "v1.2.3"}); err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text.String()), &manifest); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	if manifest.Kind != "Plugin" || manifest.Metadata.Name != "fence" || manifest.Spec.Version != "v1.2.3" || len(manifest.Spec.ShortDescription) > 50 {
		t.Errorf("%+v", manifest)
	}
	const releases = "https://github.com/fencedlease/fencedlease/releases/download/v1.2.3/kubectl-fence_"
	for _, p := range manifest.Spec.Platforms {
		platform := p.Selector.MatchLabels["os"] + "_" + p.Selector.MatchLabels["arch"]
		if p.URI != releases+platform+".tar.gz" || !strings.HasPrefix(p.Bin, "kubectl-fence") || p.SHA256 == "" {
			t.Errorf("%s: %+v", platform, p)
		}
	}
}

// TestReadme: it has every verb, and every field that programs read.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	for _, cmd := range newCommand(genericiooptions.NewTestIOStreamsDiscard()).Commands() {
		if !strings.Contains(readme, "`kubectl fence "+cmd.Name()) && !strings.Contains(readme, "`"+cmd.Name()+"`") && cmd.Name() != "help" {
			t.Errorf("the README lacks the verb %s", cmd.Name())
		}
	}
	for _, structure := range []any{leaseReport{}, objectReport{}, eventReport{}, unlisted{}, checkReport{}, soundness.Result{}, explanation{}} {
		for field := range reflect.TypeOf(structure).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(readme, "`"+name+"`") {
				t.Errorf("the README lacks %s of %T", name, structure)
			}
		}
	}
}
