package kubectl

import (
	"errors"
	"strings"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/suite"
)

// secondTerm is where most stories begin: a ConfigMap `state` that the first
// holder of `payments` wrote under token 1, a second holder with token 2, and a
// script that is neither.
func secondTerm(w *suite.World) person {
	w.T.Helper()
	w.FencedLease("payments")
	w.Pod("first").Acquire("payments", "first")
	w.Guarded("state", "payments", 1)
	w.Pod("second").Acquire("payments", "second")
	return script(w)
}

// unclaimed is the manifest of `state`, without a token.
func unclaimed(balance string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: state\n  labels: {fencedlease.io/guarded-by: payments}\n" +
		"data: {balance: '" + balance + "'}\n"
}

// claimed is the manifest with a token and a nonce in it.
func claimed(balance, token, nonce string) string {
	return strings.Replace(unclaimed(balance), "\n  labels:",
		"\n  annotations: {fencedlease.io/token: '"+token+"', fencedlease.io/write: '"+token+"/"+nonce+"'}\n  labels:", 1)
}

func wantMark(w *suite.World, mark string) {
	w.T.Helper()
	if got := w.GetConfigMap("state").Annotations[v1alpha1.AnnotationToken]; got != mark {
		w.T.Errorf("mark %q, want %q", got, mark)
	}
}

func wantBalance(w *suite.World, balance string) {
	w.T.Helper()
	if got := w.GetConfigMap("state").Data["balance"]; got != balance {
		w.T.Errorf("balance %q, want %q", got, balance)
	}
}

// has is an error unless all parts are on the standard output.
func has(r result, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(r.Stdout, part) {
			return errors.New(r.Stdout + r.Stderr)
		}
	}
	return nil
}
