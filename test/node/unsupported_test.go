package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What cannot be done is said in the status of the Pod.
func TestComplaints(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cases := map[string]struct{ spec, reason, message string }{
		"host-network":   {`{hostNetwork: true, containers: [{name: app, image: IMAGE}]}`, reasonNotSupported, "hostNetwork"},
		"host-port":      {`{containers: [{name: app, image: IMAGE, ports: [{containerPort: 80, hostPort: 80}]}]}`, reasonNotSupported, "hostPort"},
		"host-path":      {`{containers: [{name: app, image: IMAGE}], volumes: [{name: host, hostPath: {path: /}}]}`, reasonNotSupported, `volume "host"`},
		"exec-probe":     {`{containers: [{name: app, image: IMAGE, livenessProbe: {exec: {command: [x]}}}]}`, reasonNotSupported, "probes"},
		"exec-pre-stop":  {`{containers: [{name: app, image: IMAGE, lifecycle: {preStop: {exec: {command: [x]}}}}]}`, reasonNotSupported, "preStop"},
		"sidecar":        {`{containers: [{name: app, image: IMAGE}], initContainers: [{name: side, image: IMAGE, restartPolicy: Always}]}`, reasonNotSupported, "sidecars"},
		"privileged":     {`{containers: [{name: app, image: IMAGE, securityContext: {privileged: true}}]}`, reasonNotSupported, "privileged"},
		"unknown-image":  {`{containers: [{name: app, image: unknown}]}`, "ErrImagePull", `"unknown"`},
		"no-such-user":   {`{containers: [{name: app, image: IMAGE, securityContext: {runAsNonRoot: true, runAsUser: 0}}]}`, "CreateContainerConfigError", "runAsNonRoot"},
		"no-such-secret": {`{containers: [{name: app, image: IMAGE, env: [{name: A, valueFrom: {secretKeyRef: {name: none, key: none}}}]}]}`, "CreateContainerConfigError", `"none" not found`},
	}
	for name, tc := range cases {
		s.apply("{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: " + tc.spec + "}")
	}
	s.apply(`{apiVersion: v1, kind: Pod, metadata: {name: no-program}, spec: {restartPolicy: Never, containers: [{name: app, image: IMAGE, command: [/none]}]}}`)
	s.apply(`{apiVersion: v1, kind: Pod, metadata: {name: no-node}, spec: {nodeSelector: {none: none}, containers: [{name: app, image: IMAGE}]}}`)
	for name, tc := range cases {
		s.pod(name, tc.reason, func(p *corev1.Pod) bool {
			w := p.Status.ContainerStatuses
			return p.Status.Phase == corev1.PodPending && len(w) == 1 && w[0].State.Waiting != nil &&
				w[0].State.Waiting.Reason == tc.reason && strings.Contains(w[0].State.Waiting.Message, tc.message)
		})
	}
	s.pod("no-program", "failed", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed && p.Status.ContainerStatuses[0].State.Terminated.Reason == "StartError"
	})
	s.pod("no-node", "nowhere", func(p *corev1.Pod) bool {
		c := p.Status.Conditions
		return p.Spec.NodeName == "" && len(c) == 1 && c[0].Reason == corev1.PodReasonUnschedulable
	})
	s.kubectl("", "delete", "pods", "--all", "--timeout=20s")
}
