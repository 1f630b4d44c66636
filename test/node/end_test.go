package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// When the agent ends, whichever way, nothing of its Pods is left; and the next agent
// starts them again. This test comes before those that run in parallel.
func TestNothingIsLeft(t *testing.T) {
	s := newScene(t)
	s.apply(`
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers:
  - {name: one, image: IMAGE}
  - {name: two, image: IMAGE, command: [/testapp, deaf], env: [{name: PORT, value: "8081"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: once}
spec: {restartPolicy: Never, containers: [{name: app, image: IMAGE}]}
`)
	p := s.pod("app", "ready", ready)
	s.pod("once", "ready", ready)
	if found, err := leftovers(); err != nil || len(found) == 0 {
		t.Fatalf("the test looks for the wrong things: %v, %v", found, err)
	}
	restarts := int32(0)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		restarts++
		s.must(agents.stop(signal))
		s.eventually("everything to be gone", func() error {
			if found, err := leftovers(); err != nil || len(found) > 0 {
				return fmt.Errorf("found %v, %w", found, err)
			}
			return nil
		})
		if _, err := net.InterfaceByName(bridge); err == nil && signal == syscall.SIGTERM {
			t.Error("the bridge is left")
		}
		s.must(agents.start(t.Context()))
		again := s.pod("app", "started again", func(again *corev1.Pod) bool {
			return ready(again) && again.Status.ContainerStatuses[0].RestartCount == restarts
		})
		if again.UID != p.UID {
			t.Error("it is another Pod")
		}
		once := s.pod("once", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
		if reason := once.Status.ContainerStatuses[0].State.Terminated.Reason; reason != "ContainerStatusUnknown" {
			t.Errorf("reason %q", reason)
		}
	}
	s.kubectl("", "delete", "pod", "app", "once", "--grace-period=1")
}

// A node does without the API server: what runs goes on, and what ends is started again.
func TestOutage(t *testing.T) {
	s := newScene(t)
	s.apply(`
apiVersion: v1
kind: Pod
metadata: {name: app}
spec: {containers: [{name: app, image: IMAGE, readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}}]}
`)
	p := s.pod("app", "ready", ready)
	var apiServer int
	file, err := os.ReadFile(filepath.Join(plane.Dir, "kube-apiserver.pid"))
	s.must(err)
	s.must(fmt.Sscan(string(file), &apiServer))

	s.must(syscall.Kill(apiServer, syscall.SIGSTOP))
	defer func() { s.must(syscall.Kill(apiServer, syscall.SIGCONT)) }()
	s.must(kill(s.pid(p)))
	s.eventually("it to run again", func() error {
		if alive(s.pid(p)) {
			return errors.New("it is still there")
		}
		_, err := call(t.Context(), p.Status.PodIP, "GET", "/ready")
		return err
	})
	s.must(syscall.Kill(apiServer, syscall.SIGCONT))
	s.pod("app", "ready again", func(p *corev1.Pod) bool { return ready(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
}

// leftovers are what is there only as long as there are Pods: interfaces, processes of
// containers. Their files remain when the agent is killed, until the next one.
func leftovers() ([]string, error) {
	var found []string
	links, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		if strings.HasPrefix(link.Name, "veth") {
			found = append(found, "interface "+link.Name)
		}
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, process := range processes {
		line, err := os.ReadFile("/proc/" + process.Name() + "/cmdline")
		if err == nil && strings.HasPrefix(string(line), "/testapp") {
			found = append(found, "process "+process.Name())
		}
	}
	return found, nil
}
