package main

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What changes in a Secret or a ConfigMap reaches the running container; what is
// optional may be missing; modes and paths are as the volume says.
func TestVolumes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.apply(`
apiVersion: v1
kind: Pod
metadata: {name: app, labels: {colour: green}}
spec:
  securityContext: {runAsUser: 1234, runAsGroup: 1234, fsGroup: 4321}
  volumes:
  - {name: secret, secret: {secretName: secret, defaultMode: 0400}}
  - {name: optional, secret: {secretName: optional, optional: true}}
  - name: all
    projected:
      sources:
      - {configMap: {name: config, items: [{key: colour, path: deep/down/colour}]}}
      - {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
      - {serviceAccountToken: {path: token, audience: somebody, expirationSeconds: 600}}
  containers:
  - name: app
    image: IMAGE
    volumeMounts:
    - {name: secret, mountPath: /secret}
    - {name: optional, mountPath: /optional}
    - {name: all, mountPath: /all}
    - {name: all, mountPath: /one, subPath: deep/down/colour}
`)
	s.pod("app", "waiting for its volumes", func(p *corev1.Pod) bool { return p.Status.Message != "" })
	s.apply(`
{apiVersion: v1, kind: Secret, metadata: {name: secret}, stringData: {a: old, b: old}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {colour: green}}
`)
	p := s.pod("app", "ready", ready)
	file := func(path, want string) {
		t.Helper()
		s.eventually(path+" to have "+want, func() error {
			got, err := call(t.Context(), p.Status.PodIP, http.MethodGet, "/file"+path)
			if err != nil {
				got = err.Error()
			}
			if got != want {
				return fmt.Errorf("it has %q", got)
			}
			return nil
		})
	}
	file("/secret/a", "old")
	file("/all/deep/down/colour", "green")
	s.contains(s.read(p, "/file/all/labels"), "colour=\"green\"\n")
	file("/one", "green")
	if token := s.read(p, "/file/all/token"); len(token) < 100 {
		t.Errorf("token %q", token)
	}
	if _, err := call(t.Context(), p.Status.PodIP, http.MethodPut, "/file/secret/a"); err == nil {
		t.Error(errors.New("a container may write to a Secret"))
	}
	s.apply(`
{apiVersion: v1, kind: Secret, metadata: {name: secret}, stringData: {a: new, c: new}, data: {b: null}}
---
{apiVersion: v1, kind: Secret, metadata: {name: optional}, stringData: {a: new}}
`)
	file("/secret/a", "new")
	file("/secret/c", "new")
	file("/optional/a", "new")
	s.kubectl("", "patch", "secret", "secret", "--type=json", `--patch=[{"op": "remove", "path": "/data/a"}]`)
	file("/secret/a", "open /secret/a: no such file or directory")
	s.kubectl("", "delete", "secret", "optional")
	file("/optional/a", "open /optional/a: no such file or directory")
	if n := s.pod("app", "ready", ready).Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("it was restarted %d times", n)
	}
}
