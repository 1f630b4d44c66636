package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Deployment becomes available, and the Pods behind its Service answer. They are what
// its template says, and a rollout replaces them.
func TestDeployment(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.apply(`
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {selector: {app: app}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data: {colour: green}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: 2
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      securityContext: {runAsNonRoot: true, fsGroup: 4321}
      volumes:
      - {name: shared, emptyDir: {}}
      containers:
      - name: app
        image: IMAGE
        args: [serve, --colour=$(COLOUR), $$(COLOUR), $(UNKNOWN)]
        env:
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
        - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
        - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        - {name: COLOUR, valueFrom: {configMapKeyRef: {name: config, key: colour}}}
        - {name: NONE, valueFrom: {secretKeyRef: {name: none, key: none, optional: true}}}
        - {name: TWICE, value: $(COLOUR)-$(COLOUR)}
        envFrom:
        - {prefix: ALL_, configMapRef: {name: config}}
        resources: {limits: {memory: 64Mi, cpu: 1500m}}
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 1}
        volumeMounts: [{name: shared, mountPath: /shared}]
        securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`)
	s.kubectl("", "wait", "--for=condition=Available", "deployment/app", "--timeout=30s")
	var first []string
	s.eventually("two endpoints that answer", func() (err error) {
		first, err = s.endpoints()
		return err
	})

	t.Run("container", func(t *testing.T) {
		s := &scene{t, s.namespace}
		list, err := s.pods().List(t.Context(), metav1.ListOptions{LabelSelector: "app=app"})
		s.must(err)
		p := &list.Items[0]
		s.contains(s.read(p, "/env"), "POD="+p.Name, "ADDRESS="+p.Status.PodIP, "APP=app", "LIMIT=64", "CPUS=2", "TWICE=green-green",
			"ALL_colour=green", "FROM_IMAGE=yes", "HOSTNAME="+p.Name, "KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=443")
		s.contains(s.read(p, "/args"), "/testapp serve --colour=green $(COLOUR) $(UNKNOWN)")
		s.contains(s.read(p, "/file/proc/self/status"), "NoNewPrivs:\t1", "CapBnd:\t0000000000000000", "CapEff:\t0000000000000000",
			"Uid:\t65532\t65532", "Gid:\t65532\t65532", "Groups:\t4321", "\nPid:\t1\n")
		s.contains(s.read(p, "/self"), `"username":"system:serviceaccount:`+s.namespace+`:default"`, `pod-name":["`+p.Name, string(p.UID))
		for path, want := range map[string]string{"/etc-passwd": "read-only file system", "/shared/file": ""} {
			_, err := call(t.Context(), p.Status.PodIP, http.MethodPut, "/file"+path)
			if got := fmt.Sprint(err); !strings.Contains(got, want) || (want == "") != (err == nil) {
				t.Errorf("write %s: %v, want %q", path, err, want)
			}
		}
		s.contains(s.kubectl("", "logs", p.Name, "--tail=1"), "serving")
	})

	s.kubectl("", "rollout", "restart", "deployment/app")
	s.kubectl("", "rollout", "status", "deployment/app", "--timeout=30s")
	s.eventually("two other endpoints", func() error {
		second, err := s.endpoints()
		if err == nil && (second[0] == first[0] || second[1] == first[1]) {
			err = errors.New("they are the same")
		}
		return err
	})
}

// endpoints are the addresses behind the Service app; it is an error unless there are two,
// and both answer.
func (s *scene) endpoints() ([]string, error) {
	slices, err := client.DiscoveryV1().EndpointSlices(s.namespace).List(s.Context(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=app"})
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if ready := endpoint.Conditions.Ready; ready == nil || !*ready {
				return nil, errors.New("not all are ready")
			}
			addresses = append(addresses, endpoint.Addresses...)
		}
	}
	if len(addresses) != 2 {
		return nil, fmt.Errorf("there are %d", len(addresses))
	}
	for _, address := range addresses {
		if _, err := call(s.Context(), address, http.MethodGet, "/ready"); err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

// Readiness reaches the Pod's status, in both directions; liveness restarts, startup
// comes first.
func TestProbes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.apply(`
apiVersion: v1
kind: Pod
metadata: {name: readiness}
spec:
  containers:
  - name: app
    image: IMAGE
    startupProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
    readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1, failureThreshold: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: liveness}
spec:
  containers:
  - name: app
    image: IMAGE
    livenessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1, failureThreshold: 1, initialDelaySeconds: 1}
`)
	p := s.pod("readiness", "ready", ready)
	s.must(call(t.Context(), p.Status.PodIP, http.MethodPost, "/unready"))
	s.pod("readiness", "not ready", notReady)
	s.must(call(t.Context(), p.Status.PodIP, http.MethodPost, "/ready"))
	p = s.pod("readiness", "ready again", ready)
	if n := p.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("it was restarted %d times", n)
	}

	p = s.pod("liveness", "ready", ready)
	s.must(call(t.Context(), p.Status.PodIP, http.MethodPost, "/unready"))
	p = s.pod("liveness", "restarted", func(p *corev1.Pod) bool { return ready(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
	if code := p.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode; code != 0 {
		t.Errorf("exit code %d: it was not asked first", code)
	}
}

// A process that is killed makes its Pod unready at once, and is started again.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.apply(`
apiVersion: v1
kind: Pod
metadata: {name: app}
spec: {containers: [{name: app, image: IMAGE, readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}}]}
`)
	p := s.pod("app", "ready", ready)
	for _, exit := range []struct {
		cause          func()
		code, restarts int32
	}{
		{func() { s.must(kill(s.pid(p))) }, 137, 1},
		{func() { _, _ = call(t.Context(), p.Status.PodIP, http.MethodPost, "/exit") }, 7, 2},
	} {
		exit.cause()
		s.pod("app", "not ready", notReady)
		p = s.pod("app", "restarted", func(p *corev1.Pod) bool {
			return ready(p) && p.Status.ContainerStatuses[0].RestartCount == exit.restarts
		})
		if code := p.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode; code != exit.code {
			t.Errorf("exit code %d, want %d", code, exit.code)
		}
	}
	s.contains(s.kubectl("", "logs", "app", "--previous"), "serving")
}
