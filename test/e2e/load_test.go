package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/suite"
	"github.com/fencedlease/fencedlease/test/traffic"
)

// calm is for how long the load goes on before and after.
const calm = 2 * time.Second

// underLoad does something while guarded objects are written and Leases handed over,
// and judges the failures.
func underLoad(t *testing.T, judge func(t *testing.T, began time.Time, failed []traffic.Failure), do func(w *suite.World)) {
	t.Helper()
	w := suite.In(t, plane)
	load, stop := traffic.Send(w)
	time.Sleep(calm)
	if failed := load.Failed(); len(failed) > 0 {
		t.Errorf("before anything was done: %s", load)
	}
	began := time.Now()
	do(w)
	settled(w)
	ended := time.Since(began)
	time.Sleep(calm)
	stop()
	t.Logf("in %s: %s", ended.Round(100*time.Millisecond), load)
	judge(t, began, load.Failed())
}

// settled waits until all Pods of the release are ready, none is about to end, and one
// of them leads.
func settled(w *suite.World) {
	w.T.Helper()
	w.Eventually("all replicas are ready, and no others are left", func() error {
		pods := &corev1.PodList{}
		w.Must(w.Admin.List(w.Ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "fencedlease"}))
		holder, led := leads(w), false
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp != nil || !ready(pod) {
				return fmt.Errorf("Pod %s: %s", pod.Name, pod.Status.Phase)
			}
			led = led || pods.Items[i].Name == holder
		}
		if !led {
			return errors.New("nobody leads")
		}
		return nil
	})
}

// leads is the Pod that runs the controllers.
func leads(w *suite.World) string {
	w.T.Helper()
	holder, _, _ := strings.Cut(shell(w.T, "kubectl get lease fencedlease --namespace "+namespace+" --output jsonpath='{.spec.holderIdentity}'"), "_")
	return holder
}

// lossless: no answer but those that the protocol calls for.
func lossless(t *testing.T, _ time.Time, failed []traffic.Failure) {
	t.Helper()
	if len(failed) > 0 {
		t.Errorf("%d requests failed", len(failed))
	}
}

// crash: what is under way in a process that is killed, or is led to it before its end
// is known, fails: a few requests. Nothing after that, and all of it says why.
func crash(t *testing.T, began time.Time, failed []traffic.Failure) {
	t.Helper()
	const known, few = 3 * time.Second, 25
	if len(failed) > few {
		t.Errorf("%d requests failed", len(failed))
	}
	for _, f := range failed {
		if f.At.Sub(began) > known {
			t.Errorf("failed %s after the crash: %v", f.At.Sub(began).Round(time.Millisecond), f.Err)
		}
		var status apierrors.APIStatus
		if !errors.As(f.Err, &status) || status.Status().Code != http.StatusInternalServerError || !strings.Contains(f.Err.Error(), "failed calling webhook") {
			t.Errorf("not for lack of a webhook: %v", f.Err)
		}
	}
}

// deletePods deletes one replica after the other, each when all are ready again.
func deletePods(t *testing.T) {
	t.Helper()
	for _, pod := range strings.Fields(shell(t, "kubectl get pods --namespace "+namespace+" --selector app.kubernetes.io/name=fencedlease --output name")) {
		shell(t, "kubectl delete "+pod+" --namespace "+namespace+" --wait=false && kubectl rollout status deployment/fencedlease --namespace "+namespace+" --timeout 60s && kubectl wait --for=delete "+pod+" --namespace "+namespace+" --timeout 60s")
	}
}

// killReplica kills the process of the replica that leads.
func killReplica(w *suite.World) {
	w.T.Helper()
	leader := leads(w)
	pod := pod(w, namespace, leader)
	if !strings.Contains(metrics(w, pod), `fencedlease_webhook_decisions_total{decision="allow"`) {
		w.T.Errorf("nothing was asked of %s", leader)
	}
	restarts := pod.Status.ContainerStatuses[0].RestartCount
	w.Must(syscall.Kill(pid(w, pod), syscall.SIGKILL))
	w.Eventually("it is there again", func() error {
		again := readPod(w, namespace, leader)
		if again.Status.ContainerStatuses[0].RestartCount <= restarts || !ready(again) {
			return errors.New("it is not")
		}
		return nil
	})
}

// metrics are those of a Pod.
func metrics(w *suite.World, pod *corev1.Pod) string {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.Ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod.Status.PodIP, "8080")+"/metrics", nil)
	w.Must(err)
	response, err := http.DefaultClient.Do(request)
	w.Must(err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	w.Must(err)
	return string(text)
}

// ready says whether a Pod is ready.
func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
