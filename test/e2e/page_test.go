package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// page is docs/install.md, whose commands are run as they are, but those about the
// image: there is no container engine.
type page struct {
	blocks map[string][]string // of sh, under each heading
	run    map[string]bool     // the headings whose blocks were run
}

func readPage(t *testing.T) *page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	p := &page{blocks: map[string][]string{}, run: map[string]bool{}}
	heading, block, inside := "", "", false
	for line := range strings.Lines(string(text)) {
		switch {
		case inside && line == "```\n":
			p.blocks[heading] = append(p.blocks[heading], block)
			inside = false
		case inside:
			block += line
		case line == "```sh\n":
			block, inside = "", true
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimSpace(strings.TrimPrefix(line, "## "))
		}
	}
	return p
}

// do runs the commands under a heading, with some words replaced (old, new, …), and
// returns what they print.
func (p *page) do(t *testing.T, heading string, words ...string) string {
	t.Helper()
	if len(p.blocks[heading]) == 0 {
		t.Fatalf("docs/install.md has no commands under %q", heading)
	}
	p.run[heading] = true
	var said strings.Builder
	for _, block := range p.blocks[heading] {
		said.WriteString(shell(t, strings.NewReplacer(words...).Replace(block)))
	}
	return said.String()
}

// complete: there is no command on the page that was not run.
func (p *page) complete(t *testing.T) {
	t.Helper()
	for heading := range p.blocks {
		if !p.run[heading] {
			t.Errorf("the commands under %q were not run", heading)
		}
	}
}

// shell runs commands as a reader of the page does, in the root of the repository:
// with helm, kubectl and its plugin, as the administrator of the cluster. They have
// nothing of the user's own configuration.
func shell(t *testing.T, commands string) string {
	t.Helper()
	output, err := tryShell(t, commands)
	if err != nil {
		t.Fatalf("%s\n%v\n%s", commands, err, output)
	}
	return output
}

func tryShell(t *testing.T, commands string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	assets, err := kubectlDir()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(plane.Dir, "home")
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	command.Dir = root
	command.Env = append(os.Environ(),
		"PATH="+strings.Join([]string{filepath.Join(root, "bin", "tools"), assets, filepath.Join(root, "bin"), os.Getenv("PATH")}, ":"),
		"KUBECONFIG="+plane.KubeconfigPath, "KUBERC=off", "HOME="+home, "KUBECACHEDIR="+filepath.Join(home, "kubectl"),
		"HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home)
	output, err := command.CombinedOutput()
	return string(output), err
}
