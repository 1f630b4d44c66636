package chart

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/suite"
)

// checkHook upgrades with the check, which the test runs in the place of a node: the
// upgrade ends when the check says that all is well.
func checkHook(w *suite.World) {
	w.T.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := helm(w.Ctx, w.T, "upgrade", release, chartDir(w.T), "--namespace="+namespace, "--set=check.timeoutSeconds=30")
		ended <- err
	}()
	check := &batchv1.Job{}
	w.Eventually("there is a Job", func() error {
		select {
		case err := <-ended:
			w.T.Fatalf("the upgrade did not wait: %v", err)
		default:
		}
		return w.Admin.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "fencedlease-check"}, check)
	})
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&check.Spec.Template)
	w.Must(err)
	kubeconfig := createPod(w, "fencedlease-check-0", template)
	out, err := runCheck(w, kubeconfig, check.Spec.Template.Spec.Containers[0])
	if err != nil {
		w.T.Errorf("the check failed: %v\n%s", err, out)
	}
	if strings.Contains(out, "!") || strings.Count(out, "✓") < 9 {
		w.T.Errorf("it did not look at everything:\n%s", out)
	}
	select {
	case err := <-ended:
		w.T.Errorf("the upgrade did not wait: %v", err)
	default:
	}
	complete(w, check)
	w.Must(<-ended)
	for _, object := range []client.Object{
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fencedlease-check"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fencedlease-check"}},
	} {
		w.Eventually(fmt.Sprintf("%T is gone", object), func() error {
			if err := w.Admin.Get(w.Ctx, client.ObjectKeyFromObject(object), object); err == nil {
				return errors.New("it is there")
			}
			return nil
		})
	}
	w.Must(w.Admin.Delete(w.Ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fencedlease-check-0"}}, client.GracePeriodSeconds(0)))
}

// helmTest runs the test of the release, in the place of a node.
func helmTest(w *suite.World) {
	w.T.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := helm(w.Ctx, w.T, "test", release, "--namespace="+namespace)
		ended <- err
	}()
	pod := &corev1.Pod{}
	w.Eventually("there is a Pod", func() error {
		return w.Admin.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "fencedlease-check-test"}, pod)
	})
	if out, err := runCheck(w, tokenOf(w, pod), pod.Spec.Containers[0]); err != nil || strings.Contains(out, "!") {
		w.T.Errorf("the test failed: %v\n%s", err, out)
	}
	pod.Status.Phase = corev1.PodSucceeded
	w.Must(w.Admin.Status().Update(w.Ctx, pod))
	w.Must(<-ended)
}

// runCheck runs the container of the check as a process, with its own rights.
func runCheck(w *suite.World, kubeconfig string, container corev1.Container) (string, error) {
	w.T.Helper()
	program := os.Getenv("FENCEDLEASE_PLUGIN")
	if program == "" {
		program = path(w.T, "bin", filepath.Base(container.Command[0]))
	}
	command := exec.CommandContext(w.Ctx, program, container.Args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+w.T.TempDir())
	out, err := command.CombinedOutput()
	return string(out), err
}

// complete does what the Job controller does when the Pod of a Job has succeeded.
func complete(w *suite.World, job *batchv1.Job) {
	w.T.Helper()
	now := metav1.NewTime(time.Now())
	job.Status.StartTime = &now
	job.Status.CompletionTime = &now
	job.Status.Succeeded = 1
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "CompletionsReached", LastTransitionTime: now, LastProbeTime: now,
		})
	}
	w.Must(w.Admin.Status().Update(w.Ctx, job))
}
