package plugin

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// terminal is where somebody runs kubectl, with the test's namespace as the
// default.
type terminal struct {
	w          *suite.World
	name       string // as the API server knows who sits there
	kubeconfig string
	env        []string
	listener   io.Writer // hears what is said on standard error, if not nil
}

// at sits an actor down at a terminal.
func at(w *suite.World, actor *suite.Actor) terminal {
	w.T.Helper()
	t := terminal{w: w, kubeconfig: w.Kubeconfig(actor.Config)}
	review := &authenticationv1.SelfSubjectReview{}
	w.Must(actor.Create(w.Ctx, review))
	t.name = review.Status.UserInfo.Username
	return t
}

// with is the terminal with environment variables, each name=value.
func (t terminal) with(env ...string) terminal {
	t.env = slices.Concat(t.env, env)
	return t
}

// fence runs `kubectl fence`.
func (t terminal) fence(args ...string) result {
	t.w.T.Helper()
	return t.kubectl("", append([]string{"fence"}, args...)...)
}

// file writes a file, and returns its path.
func (t terminal) file(name, text string) string {
	t.w.T.Helper()
	path := filepath.Join(filepath.Dir(t.kubeconfig), name)
	t.w.Must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// kubectl runs the real kubectl, with the plugin in its PATH.
func (t terminal) kubectl(stdin string, args ...string) result {
	t.w.T.Helper()
	kubectl, err := cluster.Asset("kubectl")
	t.w.Must(err)
	var stdout, stderr strings.Builder
	command := exec.CommandContext(t.w.Ctx, kubectl, args...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if t.listener != nil {
		command.Stderr = io.MultiWriter(&stderr, t.listener)
	}
	command.Dir = filepath.Dir(t.kubeconfig)
	command.Env = slices.Concat(os.Environ(), []string{
		"KUBECONFIG=" + t.kubeconfig, "KUBECACHEDIR=" + filepath.Join(command.Dir, "cache"), "KUBERC=off", "HOME=" + command.Dir,
		"PATH=" + t.w.Plugins() + ":" + filepath.Dir(kubectl) + ":" + os.Getenv("PATH"), "FENCING_TOKEN=",
	}, t.env)
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.w.T.Fatal(err)
	}
	return result{t.w.T, "kubectl " + strings.Join(args, " "), cluster.Output{
		Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: command.ProcessState.ExitCode(),
	}}
}

// result is what a command left behind.
type result struct {
	t       *testing.T
	command string
	cluster.Output
}

// prints checks that a command succeeded with nothing on stderr, and parts of its
// stdout.
func (r result) prints(parts ...string) result {
	r.t.Helper()
	if r.ExitCode != 0 || r.Stderr != "" {
		r.t.Fatalf("%s\nexit status %d, want 0 and nothing on stderr\n%s%s", r.command, r.ExitCode, r.Stdout, r.Stderr)
	}
	return r.has(r.Stdout, parts...)
}

// warns checks that a command succeeded, and parts of its stderr.
func (r result) warns(parts ...string) result {
	r.t.Helper()
	if r.ExitCode != 0 {
		r.t.Fatalf("%s\nexit status %d, want 0\n%s%s", r.command, r.ExitCode, r.Stdout, r.Stderr)
	}
	return r.has(r.Stderr, parts...)
}

// fails checks the exit status, 1, and parts of stderr.
func (r result) fails(parts ...string) result {
	r.t.Helper()
	if r.ExitCode != 1 {
		r.t.Fatalf("%s\nexit status %d, want 1\n%s%s", r.command, r.ExitCode, r.Stdout, r.Stderr)
	}
	return r.has(r.Stderr, parts...)
}

// refused checks that a command was refused for a reason, and that it says what to
// do; and parts of stderr.
func (r result) refused(reason fence.Reason, parts ...string) result {
	r.t.Helper()
	return r.fails(append([]string{"Error from server (" + string(reason) + "): ", "\n" + string(reason) + ": "}, parts...)...)
}

// spaces are what tables are made of.
var spaces = regexp.MustCompile(" +")

// has checks parts of a text, in which several spaces count as one.
func (r result) has(text string, parts ...string) result {
	r.t.Helper()
	text = spaces.ReplaceAllString(text, " ")
	for _, part := range parts {
		if !strings.Contains(text, part) {
			r.t.Errorf("%s\nlacks %q in:\n%s", r.command, part, text)
		}
	}
	return r
}

// lacks checks that parts are not on stdout.
func (r result) lacks(parts ...string) {
	r.t.Helper()
	for _, part := range parts {
		if strings.Contains(r.Stdout, part) {
			r.t.Errorf("%s\nhas %q in:\n%s", r.command, part, r.Stdout)
		}
	}
}
