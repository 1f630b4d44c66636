package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/suite"
)

// candidates are two Pods with client-go's own election, with its default timings, one
// of which writes to a guarded ConfigMap each second.
const candidates = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: elector
  namespace: %[1]s
spec:
  replicas: 2
  selector: {matchLabels: {app: elector}}
  template:
    metadata: {labels: {app: elector}}
    spec:
      containers:
      - name: elector
        image: ` + elector + `
        args: [-namespace=%[1]s, -lease=payments, -account=account-99]
`

// pausedLeader: a leader that is stopped for longer than its Lease lasts wakes up and
// writes. The API server refuses that, over Service and EndpointSlice.
func pausedLeader(t *testing.T) {
	w := suite.In(t, plane)
	w.FencedLease("payments")
	first := w.Admin.Acquire("payments", "administrator")
	w.Guarded("account-99", "payments", first)
	w.Admin.Release("payments")
	out, err := plane.KubectlInput(w.Ctx, fmt.Sprintf(candidates, w.Namespace), "apply", "--filename=-")
	w.Must(err)
	if out.ExitCode != 0 {
		t.Fatal(out.Stderr)
	}
	w.AwaitToken("payments", 2)
	leader := leading(w)
	says(w, leader, "leads with token 2", "wrote 2")

	process := pid(w, pod(w, w.Namespace, leader))
	w.Must(syscall.Kill(process, syscall.SIGSTOP))
	paused := time.Now()
	defer func() { _ = syscall.Kill(process, syscall.SIGCONT) }() // whatever happens: the node has to end it
	w.AwaitToken("payments", 3)
	successor := leading(w)
	says(w, successor, "leads with token 3", "wrote 2")
	w.Must(syscall.Kill(process, syscall.SIGCONT))
	t.Logf("%s was stopped for %s, and %s took over", leader, time.Since(paused).Round(100*time.Millisecond), successor)

	says(w, leader, "token 2 is stale: the newest is 3")
	if got := w.GetConfigMap("account-99").Annotations["fencedlease.io/token"]; got != "3" {
		t.Errorf("the mark is %s", got)
	}
	for line := range strings.Lines(said(w, leader)) {
		if strings.Contains(line, "stale") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// leading is the Pod that holds the Lease: its name is the host name in the identity.
func leading(w *suite.World) string {
	w.T.Helper()
	holder := w.Lease("payments").Spec.HolderIdentity
	if holder == nil {
		w.T.Fatal("nobody holds the Lease")
	}
	name, _, _ := strings.Cut(*holder, "_")
	return name
}

// says waits until a Pod has said all that.
func says(w *suite.World, pod string, parts ...string) {
	w.T.Helper()
	w.Eventually(pod+" says "+strings.Join(parts, ", "), func() error {
		text := said(w, pod)
		for _, part := range parts {
			if !strings.Contains(text, part) {
				return errors.New(text)
			}
		}
		return nil
	})
}

// said is what a Pod has said, over all restarts.
func said(w *suite.World, pod string) string {
	files, err := filepath.Glob(filepath.Join(podsDir(), w.Namespace+"_"+pod+"_*.log"))
	w.Must(err)
	var text strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		w.Must(err)
		text.Write(data)
	}
	return text.String()
}

// pod is a Pod with a container that runs.
func pod(w *suite.World, namespace, name string) *corev1.Pod {
	w.T.Helper()
	pod := readPod(w, namespace, name)
	if len(pod.Status.ContainerStatuses) != 1 || pod.Status.ContainerStatuses[0].State.Running == nil {
		w.T.Fatalf("Pod %s does not run: %v", name, pod.Status)
	}
	return pod
}

func readPod(w *suite.World, namespace, name string) *corev1.Pod {
	w.T.Helper()
	pod := &corev1.Pod{}
	w.Must(w.Admin.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod))
	return pod
}

// pid is the process of a Pod's container: the node tells it in place of an id.
func pid(w *suite.World, pod *corev1.Pod) int {
	w.T.Helper()
	var pid int
	if _, err := fmt.Sscanf(pod.Status.ContainerStatuses[0].ContainerID, "pid://%d", &pid); err != nil || pid <= 1 {
		w.T.Fatalf("the id of the container is %q", pod.Status.ContainerStatuses[0].ContainerID)
	}
	return pid
}
