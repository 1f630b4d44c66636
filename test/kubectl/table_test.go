package kubectl

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// attempt is one write with one command: to the object, with a token in the
// annotations, or none there for "".
type attempt struct {
	p      person
	object string
	token  string
	nonce  string // new with each attempt
}

// commands are the rows of the table. Each changes something that is none of ours.
var commands = map[string]func(attempt) result{
	"kubectl create": func(a attempt) result {
		return a.p.kubectlInput(a.manifest(), "create", "-f", "-")
	},
	"kubectl apply": func(a attempt) result {
		return a.p.kubectlInput(a.manifest(), "apply", "-f", "-")
	},
	"kubectl apply --server-side": func(a attempt) result {
		return a.p.kubectlInput(a.manifest(), "apply", "--server-side", "--force-conflicts", "-f", "-")
	},
	"kubectl patch": func(a attempt) result {
		return a.p.kubectl("patch", "configmap", a.object, "-p", a.patch())
	},
	"kubectl patch --type=merge": func(a attempt) result {
		return a.p.kubectl("patch", "configmap", a.object, "--type=merge", "-p", a.patch())
	},
	"kubectl patch --type=json": func(a attempt) result {
		patch := fmt.Sprintf("[{op: add, path: /data/balance, value: '%s'}", a.nonce)
		if a.token != "" {
			patch += fmt.Sprintf(`,
				{op: add, path: /metadata/annotations/fencedlease.io~1token, value: '%s'},
				{op: add, path: /metadata/annotations/fencedlease.io~1write, value: '%s/%s'}`, a.token, a.token, a.nonce)
		}
		return a.p.kubectl("patch", "configmap", a.object, "--type=json", "-p", patch+"]")
	},
	"kubectl replace": func(a attempt) result {
		manifest := a.manifest()
		if a.token == "" { // as it was read
			token := a.p.w.GetConfigMap(a.object).Annotations[v1alpha1.AnnotationToken]
			manifest += fmt.Sprintf("  annotations: {fencedlease.io/token: %q}\n", token)
		}
		return a.p.kubectlInput(manifest, "replace", "-f", "-")
	},
	"kubectl edit": func(a attempt) result {
		edit := fmt.Sprintf("/fencedlease.io.write/d; s|^  balance: .*|  balance: '%s'|", a.nonce)
		if a.token != "" {
			edit += fmt.Sprintf(`; s|^\( *\)fencedlease.io/token: .*|\1fencedlease.io/token: "%s"\n\1fencedlease.io/write: "%s/%s"|`, a.token, a.token, a.nonce)
		}
		return a.p.edits(edit).kubectl("edit", "configmap", a.object)
	},
	"kubectl annotate": func(a attempt) result {
		args := []string{"annotate", "--overwrite", "configmap", a.object, "reviewed=" + a.nonce}
		if a.token != "" {
			args = append(args, "fencedlease.io/token="+a.token, "fencedlease.io/write="+a.token+"/"+a.nonce)
		}
		return a.p.kubectl(args...)
	},
	"kubectl label": func(a attempt) result {
		return a.p.kubectl("label", "--overwrite", "configmap", a.object, "reviewed="+a.nonce)
	},
	"kubectl delete": func(a attempt) result {
		return a.p.kubectl("delete", "configmap", a.object)
	},
}

func (a attempt) manifest() string {
	m := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\ndata: {balance: %q}\nmetadata:\n  name: %s\n"+
		"  labels: {fencedlease.io/guarded-by: payments}\n", a.nonce, a.object)
	if a.token != "" {
		m += fmt.Sprintf("  annotations: {fencedlease.io/token: %q, fencedlease.io/write: %q}\n", a.token, a.token+"/"+a.nonce)
	}
	return m
}

func (a attempt) patch() string {
	if a.token == "" {
		return fmt.Sprintf("data: {balance: '%s'}", a.nonce)
	}
	return fmt.Sprintf("data: {balance: '%s'}\nmetadata: {annotations: {fencedlease.io/token: '%s', fencedlease.io/write: '%s/%s'}}",
		a.nonce, a.token, a.token, a.nonce)
}

// answers are what the cells of the table promise: what is on stderr. kubectl
// edit prints the message of a refusal, not its reason.
var answers = map[string]map[string]string{
	"no token":             {"428": "a token that the write merely inherits is no claim: present yours"},
	"no token, older mark": {"412": "if you are a former leader, stop", "428": "present yours"},
	"stale token":          {"412": "token 1 is stale: the newest is 2, held by \"second\""},
}

var reasons = map[string]string{"412": "(FencingTokenStale)", "428": "(FencingTokenRequired)"}

// TestTable is the table of docs/kubectl.md, cell by cell: each command, with no
// token, a stale and the current one, in the annotations and beside the request.
func TestTable(t *testing.T) {
	w := suite.New(t)
	w.FencedLease("payments")
	ci := script(w)
	rows := tableRows(t)
	if len(rows) != len(commands) {
		t.Errorf("the page has %d rows, the test %d", len(rows), len(commands))
	}

	w.Pod("first").Acquire("payments", "first")
	name := func(r tableRow, kind string) string {
		return strings.NewReplacer("kubectl ", "", " --", "-", "=", "-").Replace(r.command) + "-" + kind
	}
	for _, r := range rows {
		if r.olderMark != "" {
			w.Guarded(name(r, "older"), "payments", 1)
		}
	}
	w.Pod("second").Acquire("payments", "second")

	for _, r := range rows {
		t.Run(r.command, func(t *testing.T) {
			run := commands[r.command]
			if run == nil {
				t.Fatal("no such command")
			}
			p, attempts := ci, 0
			p.w = inside(w, t)
			object := name(r, "current")
			try := func(column, cell, object, token, way string) {
				t.Helper()
				attempts++
				a := attempt{p: p, object: object, nonce: fmt.Sprintf("n%d", attempts)}
				switch {
				case token == "":
				case way == "annotation":
					a.token = token
				default:
					a.p = p.claims(token)
				}
				before := versions(p.w)
				a.check(run(a), column, cell, before)
			}
			if r.olderMark != "" {
				p.w.Guarded(object, "payments", 2)
				try("no token, older mark", r.olderMark, name(r, "older"), "", "")
			}
			try("no token", r.noToken, object, "", "")
			for _, way := range r.ways {
				try("stale token", r.stale, object, "1", way)
			}
			for _, way := range r.ways {
				if r.command == "kubectl create" {
					object = name(r, way)
				}
				try("current token", r.current, object, "2", way)
			}
			if r.olderMark != "" { // a new term raises the mark
				try("current token", r.current, name(r, "older"), "2", r.ways[0])
			}
		})
	}
}

// check compares what a command did with a cell of the table.
func (a attempt) check(r result, column, cell string, before map[string]string) {
	w := a.p.w
	w.T.Helper()
	if cell == "admitted" {
		r.exits(0)
		cm := &corev1.ConfigMap{}
		err := w.Admin.Get(w.Ctx, w.Key(a.object), cm)
		if strings.HasPrefix(r.command, "delete") {
			if !apierrors.IsNotFound(err) {
				w.T.Errorf("%s: not deleted: %v", r.command, err)
			}
			return
		}
		w.Must(err)
		if got := cm.Annotations[v1alpha1.AnnotationToken]; got != "2" {
			w.T.Errorf("%s: mark %q, want 2", r.command, got)
		}
		if cm.ResourceVersion == before[a.object] {
			w.T.Errorf("%s changed nothing", r.command)
		}
		return
	}
	answer, ok := answers[column][cell]
	if !ok {
		w.T.Fatalf("%s, %s: the test does not know what %q means", r.command, column, cell)
	}
	reason := "Error from server " + reasons[cell]
	if strings.HasPrefix(r.command, "edit") {
		reason = "could not be patched: "
	}
	r.fails(1, reason, answer)
	if after := versions(w); after[a.object] != before[a.object] {
		w.T.Errorf("%s changed the object", r.command)
	}
}
