package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

// Jobs complete, and fail; init containers come first, one by one.
func TestJobs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for name, template := range map[string]string{
		"good":     `{restartPolicy: Never, containers: [{name: app, image: IMAGE, args: [exit, "0"]}], initContainers: [{name: a, image: IMAGE, args: [exit, "0"]}, {name: b, image: IMAGE, args: [exit, "0"]}]}`,
		"bad":      `{restartPolicy: Never, containers: [{name: app, image: IMAGE, args: [exit, "3"], terminationMessagePolicy: FallbackToLogsOnError}]}`,
		"bad-init": `{restartPolicy: Never, containers: [{name: app, image: IMAGE}], initContainers: [{name: a, image: IMAGE, args: [exit, "4"]}, {name: b, image: IMAGE}]}`,
		"retried":  `{restartPolicy: OnFailure, containers: [{name: app, image: IMAGE, args: [exit, "5"]}]}`,
		"late":     `{restartPolicy: Never, activeDeadlineSeconds: 2, terminationGracePeriodSeconds: 1, containers: [{name: app, image: IMAGE}]}`,
	} {
		s.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: ` + name + `}
spec: {backoffLimit: 0, template: {spec: ` + template + `}}
`)
	}
	s.kubectl("", "wait", "--for=condition=Complete", "job/good", "--timeout=30s")
	for _, name := range []string{"bad", "bad-init", "late", "retried"} {
		s.kubectl("", "wait", "--for=condition=Failed", "job/"+name, "--timeout=30s")
	}
	s.contains(s.kubectl("", "logs", "job/good"), "exit 0")

	list, err := s.pods().List(t.Context(), metav1.ListOptions{})
	s.must(err)
	for _, p := range list.Items {
		c := p.Status.ContainerStatuses[0].State
		switch p.Labels["job-name"] {
		case "good":
			inits := p.Status.InitContainerStatuses
			a, b := inits[0].State.Terminated, inits[1].State.Terminated
			if p.Status.Phase != corev1.PodSucceeded || b.StartedAt.Before(&a.FinishedAt) || c.Terminated.StartedAt.Before(&b.FinishedAt) {
				t.Errorf("good: %+v", p.Status)
			}
		case "bad":
			if c.Terminated.ExitCode != 3 || !strings.Contains(c.Terminated.Message, "exit 3") {
				t.Errorf("bad: %+v", c)
			}
		case "bad-init":
			if c.Waiting == nil || p.Status.InitContainerStatuses[1].State.Waiting == nil {
				t.Errorf("bad-init: %+v", p.Status)
			}
		case "late":
			if p.Status.Reason != "DeadlineExceeded" {
				t.Errorf("late: %+v", p.Status)
			}
		}
	}
}

// A Pod that is deleted is asked to end, and killed if it does not; without a grace
// period, or an object, at once.
func TestDeletion(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for name, spec := range map[string]string{
		"hears":  `{containers: [{name: app, image: IMAGE}]}`,
		"deaf":   `{terminationGracePeriodSeconds: 2, containers: [{name: app, image: IMAGE, args: [deaf]}]}`,
		"sleeps": `{containers: [{name: app, image: IMAGE, lifecycle: {preStop: {sleep: {seconds: 2}}}}]}`,
		"forced": `{containers: [{name: app, image: IMAGE, args: [deaf]}]}`,
	} {
		s.apply("{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: " + spec + "}")
	}
	for name, want := range map[string]struct {
		grace    int64 // as the Pod has it, if negative
		min, max time.Duration
		said     bool
	}{
		"hears":  {-1, 0, 1500 * time.Millisecond, true},
		"deaf":   {-1, 2 * time.Second, 4 * time.Second, true},
		"sleeps": {-1, 2 * time.Second, 4 * time.Second, true},
		"forced": {0, 0, 1500 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scene{t, s.namespace}
			p := s.pod(name, "ready", ready)
			pid := s.pid(p)
			s.eventually("the program to run", func() error {
				_, err := call(t.Context(), p.Status.PodIP, "GET", "/ready")
				return err
			})
			options := metav1.DeleteOptions{}
			if want.grace >= 0 {
				options.GracePeriodSeconds = &want.grace
			}
			begin := time.Now()
			s.must(s.pods().Delete(t.Context(), name, options))
			s.eventually("its process to end", func() error {
				if alive(pid) {
					return errors.New("it is still there")
				}
				return nil
			})
			s.eventually("the object to go", func() error {
				_, err := s.pods().Get(t.Context(), name, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				return errors.New("it is still there")
			})
			if took := time.Since(begin); took < want.min || took > want.max {
				t.Errorf("it took %s, want %s to %s", took, want.min, want.max)
			}
			said, err := os.ReadFile(filepath.Join(agents.dir, s.namespace+"_"+name+"_app.log"))
			s.must(err)
			if got := strings.Contains(string(said), "SIGTERM"); got != want.said {
				t.Errorf("it said\n%s", string(said))
			}
		})
	}
}

// A log that is followed ends with its container.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.apply(`
apiVersion: v1
kind: Pod
metadata: {name: app}
spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: app, image: IMAGE, args: [deaf]}]}
`)
	s.pod("app", "ready", ready)
	time.AfterFunc(time.Second, func() {
		_, _ = plane.Kubectl(t.Context(), "--namespace="+s.namespace, "delete", "pod", "app", "--wait=false")
	})
	s.contains(s.kubectl("", "logs", "app", "--follow"), "serving", "SIGTERM")
}
