package scripts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

var (
	blockPattern = regexp.MustCompile("(?s)<!-- TestPage/([a-z-]+) -->\n```[a-z]+\n(.*?)```\n")
	startPattern = regexp.MustCompile("(?m)^```[a-z]+$")
)

// page are the blocks of docs/scripts.md, by the names of their tests.
func page(t *testing.T) map[string]string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "scripts.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, match := range blockPattern.FindAllStringSubmatch(string(text), -1) {
		blocks[match[1]] = match[2]
	}
	if all := len(startPattern.FindAllString(string(text), -1)); all != len(blocks) {
		t.Errorf("%d blocks, %d of them with a test", all, len(blocks))
	}
	return blocks
}

// settling is the story of most blocks: somebody who has the script.
func settling(t *testing.T) (*suite.World, host, map[string]string) {
	t.Helper()
	w, ann := story(t)
	blocks := page(t)
	ann.file("settle.sh", blocks["script"])
	return w, ann, blocks
}

// block runs a block in a shell that ends at the first command that fails, with
// these variables.
func (h host) block(text string, env ...string) *process {
	h.w.T.Helper()
	return h.with(env...).start("sh", "-ec", text)
}

// TestPage runs every block of docs/scripts.md.
func TestPage(t *testing.T) {
	tests := map[string]func(*testing.T){
		"first": func(t *testing.T) {
			t.Parallel()
			w := suite.New(t)
			out := newHost(w, w.Admin.Config).block(page(t)["first"]).exits(0, `Warning: no token of FencedLease "payments" was minted yet`)
			if !strings.HasSuffix(out, "configmap/state patched\n") {
				t.Errorf("it printed\n%s", out)
			}
			wantState(w, "1", "100")
			if first := page(t)["first"]; strings.Count(first, "\n") != 5 {
				t.Error("these are not five lines")
			}
		},
		"script": func(t *testing.T) {
			w, ann, blocks := settling(t)
			ann.block(blocks["run"]).exits(0)
			ann.block(blocks["run"]).exits(0)
			wantState(w, "2", "2")
			if by := w.GetConfigMap("state").Labels["settled-by"]; by != "term-2" {
				t.Errorf("settled by %q", by)
			}
		},
		"cron": func(t *testing.T) {
			w, ann, blocks := settling(t)
			ann.block(blocks["cron"]).exits(0)
			w.Admin.Acquire("payments", "somebody")
			ann.block(blocks["cron"]).exits(0, `"somebody" holds it`)
			w.Admin.Release("payments")
			ann.file("settle.sh", "#!/bin/sh\nexit 9\n")
			ann.block("(" + blocks["cron"] + ") || exit 10").exits(10)
			wantState(w, "1", "1")
		},
		"seal": func(t *testing.T) {
			w, ann, blocks := settling(t)
			w.Must(w.Admin.Create(w.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: w.Namespace, Name: "key", Labels: map[string]string{"fencedlease.io/guarded-by": "payments"},
			}}))
			ann.block(blocks["seal"]).exits(0)
			wantState(w, "1", "1")
			secret := &corev1.Secret{}
			w.Must(w.Admin.Get(w.Ctx, w.Key("key"), secret))
			if mark := secret.Annotations["fencedlease.io/token"]; mark != "1" {
				t.Errorf("the Secret has mark %q", mark)
			}
		},
		"role": func(t *testing.T) {
			w, ann, blocks := settling(t)
			// The page's namespace is the test's, and what belongs to none has names of its own.
			role := strings.NewReplacer("namespace: prod", "namespace: "+w.Namespace, "name: carry-fencing-token", "name: "+w.Namespace).Replace(blocks["role"])
			ann.file("role.yaml", role)
			config, err := suite.Cluster.PodConfig(w.Ctx, w.Namespace, "settle", "settle-1")
			w.Must(err)
			w.Must(w.Admin.Delete(w.Ctx, workers(w))) // which may do anything
			settle := newHost(w, config)
			settle.file("settle.sh", blocks["script"])
			w.Eventually("it has no right", func() error {
				return failing(settle.block(blocks["run"]), 125)
			})
			ann.start("kubectl", "apply", "-f", "role.yaml").exits(0)
			t.Cleanup(func() {
				ann.start("kubectl", "delete", "clusterrole,clusterrolebinding", w.Namespace, w.Namespace+"-settle", "--ignore-not-found").exits(0)
			})
			var run *process
			w.Eventually("it has its rights", func() error {
				run = settle.block("kubectl fence run payments --seal configmap/state -- ./settle.sh")
				return failing(run, 0)
			})
			run.exits(0)
			if by := w.GetConfigMap("state").Labels["settled-by"]; !strings.HasPrefix(by, "term-") {
				t.Errorf("settled by %q", by)
			}
			// It is nobody else, and has no right beside these.
			settle.start("kubectl", "get", "pods", "--as=admin").exits(1, "annot impersonate")
			settle.start("kubectl", "get", "secrets").exits(1, "Forbidden")
		},
		"without": func(t *testing.T) {
			w, _, blocks := settling(t)
			ci := newHost(w, w.User("ci").Config)
			ci.block(blocks["without"]).exits(0, "KUBECONFIG is left alone", "docs/scripts.md")
			wantState(w, "1", "200")
		},
		"cronjob": func(t *testing.T) {
			w, ann, blocks := settling(t)
			ann.file("cronjob.yaml", strings.ReplaceAll(blocks["cronjob"], "namespace: prod", "namespace: "+w.Namespace))
			ann.start("kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", "cronjob.yaml").exits(0)
			command := regexp.MustCompile(`command: \[(.*)\]`).FindStringSubmatch(blocks["cronjob"])
			line := strings.NewReplacer(",", "", "/settle.sh", "./settle.sh").Replace(command[1])
			ann.block(line).exits(0)
			wantState(w, "1", "1")
		},
		"store": func(t *testing.T) {
			_, ann, blocks := settling(t)
			ann.file("psql", "#!/bin/sh\necho \"$@\"\n")
			for _, variable := range ann.env {
				if path, ok := strings.CutPrefix(variable, "PATH="); ok {
					ann = ann.with("PATH=" + ann.dir + ":" + path)
				}
			}
			if out := ann.block(blocks["store"]).exits(0); out != "-v ON_ERROR_STOP=1 -v token=1 -f settle.sql\n" {
				t.Errorf("it printed %q", out)
			}
			if !strings.Contains(blocks["sql"], "fencing_token <= :token") { // as package store has it
				t.Error("the statement does not compare")
			}
		},
	}
	covered := map[string]bool{"run": true, "sql": true} // with script, and with store
	for name, test := range tests {
		covered[name] = true
		t.Run(name, test)
	}
	for name := range page(t) {
		if !covered[name] {
			t.Errorf("block %s has no test", name)
		}
	}
}

// workers is the binding with which a test's service accounts may do anything.
func workers(w *suite.World) client.Object {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "workers"}}
}

// failing is an error unless a program ends with a status.
func failing(p *process, status int) error {
	<-p.done
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		return fmt.Errorf("exit status %d:\n%s%s", got, p.stdout.String(), p.stderr.String())
	}
	return nil
}
