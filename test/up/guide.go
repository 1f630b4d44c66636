package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// guide is a first tour, command by command. The last one is refused.
var guide = []struct{ say, run string }{
	{"Fence the Lease `payments`, and guard a ConfigMap by it:",
		"kubectl apply -f config/samples/fencedlease.yaml -f config/samples/configmap.yaml"},
	{"Ann acquires the Lease. Her token, 1, comes with it:",
		`kubectl patch lease payments --type=merge -p '{"spec":{"holderIdentity":"ann"}}'` + "\n" +
			"kubectl get fencedlease"},
	{"She writes under it:",
		"kubectl annotate configmap payments-state fencedlease.io/token=1"},
	{"Bob takes over, with token 2:",
		`kubectl patch lease payments --type=merge -p '{"spec":{"holderIdentity":"bob"}}'`},
	{"Ann has not noticed, and writes again: refused, whatever the clocks say.",
		"kubectl annotate --overwrite configmap payments-state fencedlease.io/write=1/late"},
}

// printGuide says where things are and what to try.
func printGuide(out io.Writer, at place) error {
	kubectl, err := cluster.Asset("kubectl")
	if err != nil {
		return err
	}
	say(out, `
FencedLease is up.

  kubeconfig       %s
  manager's log    %s

Try it:

  export KUBECONFIG=%s PATH=%s:$PATH`, relative(at.kubeconfig()), relative(at.managerLog()), at.kubeconfig(), filepath.Dir(kubectl))
	for _, step := range guide {
		say(out, "\n  # %s\n  %s", step.say, strings.ReplaceAll(step.run, "\n", "\n  "))
	}
	say(out, "\nStop it with `make down`.")
	return nil
}

// relative is a path as one would type it here.
func relative(path string) string {
	if dir, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(short) {
			return short
		}
	}
	return path
}
