package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/suite"
)

// checkFails upgrades with a check that does not succeed: nor does the upgrade.
func checkFails(w *suite.World) {
	w.T.Helper()
	check, ended := upgradeWithCheck(w)
	end(w, check, batchv1.JobFailureTarget, batchv1.JobFailed)
	if err := <-ended; err == nil {
		w.T.Error("the upgrade succeeded although the check failed")
	}
	nothingOfTheCheck(w)
}

// checkHook upgrades with the check, which the test runs in the place of a node: the
// upgrade ends when the check says that all is well.
func checkHook(w *suite.World) {
	w.T.Helper()
	check, ended := upgradeWithCheck(w)
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
	end(w, check, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	w.Must(<-ended)
	nothingOfTheCheck(w)
	w.Must(w.Admin.Delete(w.Ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fencedlease-check-0"}}, client.GracePeriodSeconds(0)))
}

// upgradeWithCheck begins an upgrade, and returns the Job that it waits for.
func upgradeWithCheck(w *suite.World) (check *batchv1.Job, ended chan error) {
	w.T.Helper()
	ended = make(chan error, 1)
	go func() {
		_, err := helm(w.Ctx, w.T, "upgrade", release, chartDir(w.T), "--namespace="+namespace, "--set=check.timeoutSeconds=30")
		ended <- err
	}()
	check = &batchv1.Job{}
	w.Eventually("there is a Job", func() error {
		select {
		case err := <-ended:
			w.T.Fatalf("the upgrade did not wait: %v", err)
		default:
		}
		return w.Admin.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "fencedlease-check"}, check)
	})
	return check, ended
}

// end does what the Job controller does when the Pods of a Job have ended.
func end(w *suite.World, job *batchv1.Job, conditions ...batchv1.JobConditionType) {
	w.T.Helper()
	now := metav1.Now()
	job.Status.StartTime = &now
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, condition := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: condition, Status: corev1.ConditionTrue, Reason: "PodsEnded", LastTransitionTime: now, LastProbeTime: now,
		})
		if condition == batchv1.JobComplete {
			job.Status.CompletionTime = &now
			job.Status.Succeeded = 1
		}
	}
	w.Must(w.Admin.Status().Update(w.Ctx, job))
}

// nothingOfTheCheck is left once it has ended, whichever way.
func nothingOfTheCheck(w *suite.World) {
	w.T.Helper()
	in := metav1.ObjectMeta{Namespace: namespace, Name: "fencedlease-check"}
	for _, object := range []client.Object{
		&batchv1.Job{ObjectMeta: in}, &corev1.ServiceAccount{ObjectMeta: in},
		&rbacv1.ClusterRole{ObjectMeta: in}, &rbacv1.ClusterRoleBinding{ObjectMeta: in},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: in.Name}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: in.Name}},
	} {
		key := client.ObjectKeyFromObject(object)
		switch object.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			key.Namespace = ""
		}
		w.Eventually(fmt.Sprintf("%T is gone", object), func() error {
			err := w.Admin.Get(w.Ctx, key, object)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is still there (%w)", err)
		})
	}
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
