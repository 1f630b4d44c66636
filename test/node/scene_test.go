package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// patience is for a busy machine: none of it is spent when things go well.
const patience = 30 * time.Second

// scene is a namespace of a test.
type scene struct {
	*testing.T
	namespace string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t, strings.ToLower(t.Name())}
	s.must(client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{}))
	t.Cleanup(func() {
		if t.Failed() {
			out, err := plane.Kubectl(context.WithoutCancel(t.Context()), "--namespace="+s.namespace, "get", "pods", "--output=yaml")
			t.Log(out.Stdout, err)
			t.Log(agents.said())
		}
	})
	return s
}

func (s *scene) pods() typedcorev1.PodInterface { return client.CoreV1().Pods(s.namespace) }

// must is for what has no reason to fail. The first values are thrown away.
func (s *scene) must(values ...any) {
	s.Helper()
	if err, ok := values[len(values)-1].(error); ok {
		s.Fatal(err)
	}
}

// kubectl runs kubectl in the namespace.
func (s *scene) kubectl(stdin string, args ...string) string {
	s.Helper()
	out, err := plane.KubectlInput(s.Context(), stdin, append([]string{"--namespace=" + s.namespace}, args...)...)
	if err != nil || out.ExitCode != 0 {
		s.Fatalf("kubectl %v: %v, exit code %d: %s", args, err, out.ExitCode, out.Stderr)
	}
	return out.Stdout
}

// apply applies a manifest, in which IMAGE is the image of testapp.
func (s *scene) apply(manifest string) {
	s.Helper()
	s.kubectl(strings.ReplaceAll(manifest, "IMAGE", imageName), "apply", "--filename=-")
}

// eventually waits for a condition, which says what is amiss.
func (s *scene) eventually(what string, condition func() error) {
	s.Helper()
	begin := time.Now()
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			s.Fatalf("waited for %s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// pod waits until a Pod is as it should be, and returns it.
func (s *scene) pod(name, what string, condition func(*corev1.Pod) bool) *corev1.Pod {
	s.Helper()
	var found *corev1.Pod
	s.eventually(name+" to be "+what, func() (err error) {
		if found, err = s.pods().Get(s.Context(), name, metav1.GetOptions{}); err == nil && !condition(found) {
			err = fmt.Errorf("it is %s: %+v", found.Status.Phase, found.Status.ContainerStatuses)
		}
		return err
	})
	return found
}

func ready(p *corev1.Pod) bool { return isTrue(p, corev1.PodReady) }

func notReady(p *corev1.Pod) bool { return !isTrue(p, corev1.PodReady) }

// call sends a request to testapp in a Pod.
func call(ctx context.Context, address, method, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+net.JoinHostPort(address, "8080")+path, nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(body)))
	}
	return string(body), err
}

// read is what testapp answers to a GET.
func (s *scene) read(p *corev1.Pod, path string) string {
	s.Helper()
	body, err := call(s.Context(), p.Status.PodIP, http.MethodGet, path)
	if err != nil {
		s.Fatalf("%s of %s: %v", path, p.Name, err)
	}
	return body
}

// contains complains about what is missing from a text.
func (s *scene) contains(text string, wanted ...string) {
	s.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			s.Errorf("no %q in\n%s", want, text)
		}
	}
}

// pid is the process of the first container, as the node sees it.
func (s *scene) pid(p *corev1.Pod) int {
	s.Helper()
	var pid int
	if _, err := fmt.Sscanf(p.Status.ContainerStatuses[0].ContainerID, "pid://%d", &pid); err != nil {
		s.Fatal(err)
	}
	return pid
}

// alive says whether there is a process.
func alive(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}
