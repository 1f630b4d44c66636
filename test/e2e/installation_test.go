package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// namespace is that of the release, on the page.
const namespace = "fencedlease-system"

// TestInstallation is the life of an installation, from `helm install` to `helm
// uninstall`. Each step needs the one before.
func TestInstallation(t *testing.T) {
	page := readPage(t)
	before := everything(t)
	var guarded string // a namespace with a guarded ConfigMap, state, that outlives all steps

	type step struct {
		name string
		do   func(t *testing.T)
	}
	steps := []step{
		{"install", func(t *testing.T) {
			said := page.do(t, "Install")
			if !strings.Contains(said, "is installed in namespace "+namespace+", and usable") {
				t.Errorf("helm install said\n%s", said)
			}
			// --wait means usable: this needs no patience.
			w := suite.In(t, plane)
			guarded = w.Namespace
			w.FencedLease("state")
			w.Guarded("state", "state", w.Pod("worker").Acquire("state", "worker"))
			suite.Refused(t, w.Admin.Modify("state", suite.Balance("9")), 428, fence.ReasonRequired)
			t.Log(shell(t, "kubectl get pods,endpointslices --namespace "+namespace+" --output wide"))
		}},
		{"helm test", func(t *testing.T) { t.Log(page.do(t, "See that it works")) }},
		{"a paused leader", pausedLeader},
		{"Pods deleted one after the other", func(t *testing.T) { underLoad(t, lossless, func(*suite.World) { deletePods(t) }) }},
		{"rollout restart", func(t *testing.T) { underLoad(t, lossless, func(*suite.World) { page.do(t, "Restart") }) }},
		{"another authority", func(t *testing.T) {
			underLoad(t, lossless, func(w *suite.World) {
				old := replicasServe(w)
				page.do(t, "Replace the authority")
				var next string
				w.Eventually("all replicas serve a certificate of another authority", func() error {
					if next = replicasServe(w); next != "" && next != old {
						return nil
					}
					return errors.New("they do not")
				})
				w.Must(trusted(w, next+old))
				page.do(t, "Stop trusting the old authority")
				w.Eventually("the old authority is not trusted", func() error { return trusted(w, next) })
			})
		}},
		{"upgrade to other values", func(t *testing.T) {
			underLoad(t, lossless, func(*suite.World) { page.do(t, "Other values") })
			if got := shell(t, "kubectl get deployment fencedlease --namespace "+namespace+" --output jsonpath='{.spec.replicas} {.status.readyReplicas}'"); got != "3 3" {
				t.Errorf("replicas and those that are ready: %s, want 3 3", got)
			}
		}},
		{"upgrade to the next version", func(t *testing.T) {
			next := nextChart(t)
			underLoad(t, lossless, func(*suite.World) { page.do(t, "A new version", "charts/fencedlease", next) })
			if got := images(t); got != nextImage+"\n" {
				t.Errorf("the Pods have the image %s", got)
			}
			if said, err := noted(t, guarded); err != nil {
				t.Errorf("the new field of the CRD is refused: %s", said)
			}
		}},
		{"rollback", func(t *testing.T) {
			page.do(t, "Roll back")
			settled(suite.In(t, plane))
			if got := images(t); got != image+"\n" {
				t.Errorf("the Pods have the image %s", got)
			}
			if said, err := noted(t, guarded); err == nil || !strings.Contains(said, ".spec.note: field not declared in schema") {
				t.Errorf("the new field of the CRD, after a rollback: %v\n%s", err, said)
			}
		}},
		// Last: who comes after a leader that was killed waits for the end of its Lease.
		{"a replica is killed", func(t *testing.T) { underLoad(t, crash, killReplica) }},
	}
	if os.Getenv(picturesVariable) != "" {
		pictures := takePictures(t)
		steps = append(steps, step{"what the dashboard shows beside", everythingElse}, step{"pictures", pictures.draw})
	}
	steps = append(steps, []step{
		{"uninstall", func(t *testing.T) {
			w := suite.In(t, plane).Elsewhere(guarded)
			suite.Refused(t, w.Admin.Modify("state", suite.Balance("9")), 428, fence.ReasonRequired)
			page.do(t, "Uninstall")
			suite.Admitted(t, w.Admin.Modify("state", suite.Balance("free")))
			w.Eventually("nothing is left but the CRD", func() error { return onlyAdded(t, before, kept) })
			suite.Admitted(t, w.Admin.Modify("state", suite.Balance("as a bird")))
		}},
		{"the page", page.complete},
	}...)

	for _, step := range steps {
		begin := time.Now()
		fmt.Fprintf(os.Stderr, "e2e: %s …\n", step.name)
		if !t.Run(step.name, step.do) {
			t.Log(logs(t))
			t.FailNow()
		}
		fmt.Fprintf(os.Stderr, "e2e: %s: %s\n", step.name, time.Since(begin).Round(100*time.Millisecond))
	}
}

// images are those that the manager's Pods run.
func images(t *testing.T) string {
	t.Helper()
	return shell(t, "kubectl get pods --namespace "+namespace+" --selector app.kubernetes.io/name=fencedlease --output jsonpath='{.items[*].status.containerStatuses[*].image}' | tr ' ' '\n' | sort --unique")
}
