package kubectl

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// person is somebody at a terminal: kubectl, a kubeconfig whose namespace is the
// test's, and flags that go with every command.
type person struct {
	w          *suite.World
	name       string // as the API server knows it
	kubeconfig string
	flags      []string
}

// someone sits an actor down at a terminal.
func someone(w *suite.World, actor *suite.Actor) person {
	w.T.Helper()
	p := person{w: w, kubeconfig: w.Kubeconfig(actor.Config)}
	review := &authenticationv1.SelfSubjectReview{}
	w.Must(actor.Create(w.Ctx, review))
	p.name = review.Status.UserInfo.Username
	return p
}

// admin is the cluster administrator, in the test's namespace.
func admin(w *suite.World) person {
	w.T.Helper()
	return someone(w, w.Admin)
}

// script is a job with a certificate of its own, allowed to carry its token
// beside its requests as docs/kubectl.md says. It holds no Lease.
func script(w *suite.World) person {
	w.T.Helper()
	p := someone(w, w.User("ci"))
	admin(w).sh(recipe(w.T, "allow-extra"), "SCRIPT="+w.Namespace, "SCRIPT_USER="+p.name).succeeds()
	return p
}

// with is the person with flags that go with every command.
func (p person) with(flags ...string) person {
	p.flags = append(slices.Clone(p.flags), flags...)
	return p
}

// as is the person with extras of the user, one "key=value" each.
func (p person) as(extras ...string) person {
	p = p.with("--as=" + p.name)
	if p.name == "admin" {
		p = p.with("--as-group=system:masters")
	}
	for _, extra := range extras {
		p = p.with("--as-user-extra=" + extra)
	}
	return p
}

// claims is the person with a token beside every request.
func (p person) claims(token string) person { return p.as(v1alpha1.ExtraToken + "=" + token) }

// kubectl runs a command.
func (p person) kubectl(args ...string) result {
	p.w.T.Helper()
	return p.kubectlInput("", args...)
}

// kubectlInput runs a command with something to read on its standard input.
func (p person) kubectlInput(stdin string, args ...string) result {
	p.w.T.Helper()
	args = slices.Concat(args, p.flags, []string{"--kubeconfig=" + p.kubeconfig})
	out, err := suite.Cluster.KubectlInput(p.w.Ctx, stdin, args...)
	p.w.Must(err)
	return result{p.w.T, strings.Join(args[:len(args)-1], " "), out}
}

// sh runs a script with variables, each name=value. It ends at the first command
// that fails.
func (p person) sh(script string, variables ...string) result {
	p.w.T.Helper()
	kubectl, err := cluster.Asset("kubectl")
	p.w.Must(err)
	var stdout, stderr strings.Builder
	command := exec.CommandContext(p.w.Ctx, "sh", "-euc", script)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Dir = filepath.Dir(p.kubeconfig)
	command.Env = slices.Concat(os.Environ(), []string{
		"KUBECONFIG=" + p.kubeconfig, "KUBERC=off", "HOME=" + command.Dir,
		"PATH=" + filepath.Dir(kubectl) + ":" + os.Getenv("PATH"),
	}, variables)
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.w.T.Fatal(err)
	}
	return result{p.w.T, script, cluster.Output{
		Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: command.ProcessState.ExitCode(),
	}}
}

// file writes a file into the directory that scripts run in.
func (p person) file(name, text string) {
	p.w.T.Helper()
	p.w.Must(os.WriteFile(filepath.Join(filepath.Dir(p.kubeconfig), name), []byte(text), 0o600))
}

// result is what a command left behind.
type result struct {
	t       *testing.T
	command string
	cluster.Output
}

// succeeds checks the exit code, that nothing is on stderr, and parts of stdout.
func (r result) succeeds(parts ...string) {
	r.t.Helper()
	r.exits(0)
	if r.Stderr != "" {
		r.t.Fatalf("%s\nsaid on stderr:\n%s", r.command, r.Stderr)
	}
	r.says(r.Stdout, parts...)
}

// warns checks that a command succeeded with a warning.
func (r result) warns(parts ...string) {
	r.t.Helper()
	r.exits(0)
	r.says(r.Stderr, append([]string{"Warning: "}, parts...)...)
}

// refused checks that a command was refused for a reason, and parts of stderr.
func (r result) refused(reason fence.Reason, parts ...string) {
	r.t.Helper()
	r.fails(1, append([]string{"Error from server (" + string(reason) + "): "}, parts...)...)
}

// fails checks the exit code and parts of stderr.
func (r result) fails(code int, parts ...string) {
	r.t.Helper()
	r.exits(code)
	r.says(r.Stderr, parts...)
}

func (r result) exits(code int) {
	r.t.Helper()
	if r.ExitCode != code {
		r.t.Fatalf("%s\nexit code %d, want %d\n%s%s", r.command, r.ExitCode, code, r.Stdout, r.Stderr)
	}
}

func (r result) says(text string, parts ...string) {
	r.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			r.t.Errorf("%s\nlacks %q in:\n%s", r.command, part, text)
		}
	}
}

// edits is the person with an editor that runs a sed script over the file. Each
// file that it was shown is kept: see shown.
func (p person) edits(sed string) person {
	p.w.T.Helper()
	dir := p.w.T.TempDir()
	editor := filepath.Join(dir, "editor")
	text := "#!/bin/sh -e\ncp \"$1\" " + dir + "/shown-$(date +%s%N)\ncat > " + dir + "/sed <<'EOF'\n" + sed + "\nEOF\nsed -i -f " + dir + "/sed \"$1\"\n"
	p.w.Must(os.WriteFile(editor, []byte(text), 0o700))
	p.w.T.Setenv("KUBE_EDITOR", editor)
	p.w.T.Setenv("TMPDIR", dir) // where kubectl leaves a refused edit
	return p
}

// shown are the files that the editor of edits was given.
func (p person) shown() []string {
	p.w.T.Helper()
	names, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "shown-*"))
	p.w.Must(err)
	var texts []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		p.w.Must(err)
		texts = append(texts, string(text))
	}
	return texts
}

// inside is the world in a subtest.
func inside(w *suite.World, t *testing.T) *suite.World {
	in := *w
	in.T = t
	return &in
}

// versions are the resource versions of the namespace's ConfigMaps.
func versions(w *suite.World) map[string]string {
	w.T.Helper()
	list := &corev1.ConfigMapList{}
	w.Must(w.Admin.List(w.Ctx, list, client.InNamespace(w.Namespace)))
	found := map[string]string{}
	for _, cm := range list.Items {
		found[cm.Name] = cm.ResourceVersion
	}
	return found
}
