package chart

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/cluster/process"
	"github.com/fencedlease/fencedlease/test/suite"
)

// manager is the manager as a process, in the place of a Pod of the release.
type manager struct {
	log     string
	process *process.Process
}

// startManager does what a kubelet and the controllers of Kubernetes would: it makes
// a Pod from the template of the Deployment, mounts the Secret, starts the program
// with the Pod's arguments and token, and puts its address behind the Service.
func startManager(w *suite.World, name string) *manager {
	w.T.Helper()
	rendered := releaseManifest(w.T)
	kubeconfig := createPod(w, name, field(rendered.get(w.T, deployment), "spec|template"))
	certs := filepath.Join(plane.Dir, name+"-certs")
	w.Must(os.Mkdir(certs, 0o700))
	mount(w, certs)
	webhookPort, healthPort := freePort(w.T), freePort(w.T)

	m := &manager{log: filepath.Join(plane.Dir, name+".log")}
	program := cmp.Or(os.Getenv("FENCEDLEASE_MANAGER"), path(w.T, "bin", "manager"))
	// What a process cannot have as the Pod has it. The last of two flags wins.
	args := append(arguments(w.T, rendered),
		"--kubeconfig="+kubeconfig,
		"--namespace="+namespace, // the Pod's environment has it
		fmt.Sprintf("--webhook-port=%d", webhookPort),
		"--webhook-cert-dir="+certs,
		"--metrics-bind-address=0",
		// Nobody is led here once it ends; and after an uninstall it would lose its
		// election while it waits.
		"--shutdown-delay=0s",
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", healthPort),
	)
	var err error
	m.process, err = process.Start(plane.Dir, name, program, m.log, args...)
	w.Must(err)
	w.T.Cleanup(func() { m.stop(w) })
	endpoint(w, webhookPort)
	w.Eventually("the manager is ready", func() error {
		select {
		case <-m.process.Done():
			w.T.Fatalf("it ended\n%s", process.Tail(m.log, 20))
		default:
		}
		return probe(w.Ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", healthPort))
	})
	return m
}

// stop ends the manager as a kubelet does, and looks at what it said.
func (m *manager) stop(w *suite.World) {
	w.T.Helper()
	if err := m.process.Stop(30 * time.Second); err != nil {
		w.T.Error(err)
	}
	said, err := os.ReadFile(m.log)
	w.Must(err)
	for _, word := range []string{"WARNING: DATA RACE", "panic:"} {
		if i := bytes.Index(said, []byte(word)); i >= 0 {
			w.T.Errorf("the manager said\n%s", said[i:min(len(said), i+4000)])
		}
	}
}

// createPod makes a Pod from a template. The namespace enforces the restricted Pod
// Security Standard. It returns a kubeconfig with the token that the Pod would have.
func createPod(w *suite.World, name string, template any) string {
	w.T.Helper()
	var typed corev1.PodTemplateSpec
	content, ok := template.(map[string]any)
	if !ok {
		w.T.Fatal("there is no template")
	}
	w.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(content, &typed))
	pod := &corev1.Pod{ObjectMeta: typed.ObjectMeta, Spec: typed.Spec}
	pod.Namespace, pod.Name = namespace, name
	actor, warnings := w.Admin.Warned()
	w.Must(actor.Create(w.Ctx, pod))
	warnings.Want(w.T)
	return tokenOf(w, pod)
}

// tokenOf makes a kubeconfig with the token that a Pod has.
func tokenOf(w *suite.World, pod *corev1.Pod) string {
	w.T.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Spec.ServiceAccountName}}
	w.Must(w.Admin.SubResource("token").Create(w.Ctx, account, request))
	config := rest.AnonymousClientConfig(plane.Admin)
	config.BearerToken = request.Status.Token
	kubeconfig := filepath.Join(plane.Dir, pod.Name+".kubeconfig")
	w.Must(plane.Kubeconfig(kubeconfig, config))
	return kubeconfig
}

// mount copies the Secret of the certificate to a directory, as a kubelet does,
// until the end of the test.
func mount(w *suite.World, dir string) {
	ctx, cancel := context.WithCancel(w.Ctx)
	done := make(chan struct{})
	w.T.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			secret := &corev1.Secret{}
			if err := w.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "fencedlease-webhook-cert"}, secret); err == nil {
				for name, data := range secret.Data {
					write(filepath.Join(dir, name), data)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
}

// write replaces a file at once.
func write(path string, data []byte) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return
	}
	if os.WriteFile(path+".new", data, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// endpoint puts the address of the manager behind the Service of the webhooks.
func endpoint(w *suite.World, port int32) {
	w.T.Helper()
	name, number := "webhook", port
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "fencedlease-webhook",
			Labels: map[string]string{discoveryv1.LabelServiceName: "fencedlease-webhook"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{serviceAddress}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &number}},
	}
	err := w.Admin.Create(w.Ctx, slice)
	if apierrors.IsAlreadyExists(err) {
		err = w.Admin.Update(w.Ctx, slice)
	}
	w.Must(err)
}

// freePort is a port on which nobody listens.
func freePort(t *testing.T) int32 {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	tcp, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("no port")
	}
	return int32(tcp.AddrPort().Port())
}

// probe is an error unless the address answers with 200.
func probe(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// releaseManifest is what the release has installed, its hooks included.
func releaseManifest(t *testing.T) objects {
	t.Helper()
	text, err := helm(t.Context(), t, "get", "manifest", release, "--namespace="+namespace)
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := helm(t.Context(), t, "get", "hooks", release, "--namespace="+namespace)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, strings.TrimSuffix(text, "\n")+"\n---\n"+hooks)
}
