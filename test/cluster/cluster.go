package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fencedlease/fencedlease/test/cluster/process"
)

// Deadlines, generous for a busy machine with few cores: none is ever waited out
// when things go well.
const (
	startTimeout   = 90 * time.Second
	stopTimeout    = 30 * time.Second
	kubectlTimeout = 60 * time.Second
	requestTimeout = 5 * time.Second
	pollInterval   = 50 * time.Millisecond
)

// Options say what to start. The zero value is a complete control plane in a
// temporary directory.
type Options struct {
	// Dir holds everything that the cluster writes: data, certificates, logs,
	// kubeconfigs. It must be empty or missing, and is left as it is by Stop.
	// By default it is a temporary directory, which Stop deletes.
	Dir string

	// APIServerArgs are further arguments of kube-apiserver, each --name=value;
	// they replace those of the same name.
	APIServerArgs []string

	// NoControllerManager leaves kube-controller-manager out: namespaces are not
	// emptied, dependents not collected, and no service account made.
	NoControllerManager bool

	// Workloads adds what makes Pods of Deployments and Jobs, for a node to run (test/node):
	// their controllers, and the tokens of their service accounts. The API server is then
	// where Pods look for it, at [ServiceAddress]:443, which has to be an address of the
	// machine, or of the network namespace of this process.
	Workloads bool

	// Output gets a line for each step. Nothing is written by default.
	Output io.Writer
}

// Cluster is a running control plane.
type Cluster struct {
	// Admin is the configuration of a cluster administrator (system:masters).
	// Admission applies to it as to anyone.
	Admin *rest.Config

	// KubeconfigPath is a kubeconfig file of the same administrator.
	KubeconfigPath string

	// Dir is where the cluster keeps its files; the logs are there as *.log.
	Dir string

	output    io.Writer
	root      string
	kubectl   string
	temporary bool // whether Dir is ours to delete

	reaper            *process.Reaper
	plane             envtest.ControlPlane
	controllerManager *process.Process
	client            kubernetes.Interface
	webhook           webhookServer

	mu       sync.Mutex // guards what follows, and the signing of certificates
	managers []*Manager
	stopped  bool
}

// Start starts a control plane and returns once it is usable. Whatever it had
// started is stopped again if it fails.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{output: opts.Output}
	if c.output == nil {
		c.output = io.Discard
	}
	if err := c.start(ctx, opts); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, opts Options) (err error) {
	if c.root, err = Root(); err != nil {
		return err
	}
	if c.kubectl, err = Asset("kubectl"); err != nil {
		return err
	}
	if err = c.makeDir(opts.Dir); err != nil {
		return err
	}
	if c.reaper, err = process.Reap(c.Dir); err != nil {
		return err
	}
	if err = c.startPlane(ctx, opts); err != nil {
		return err
	}
	if opts.NoControllerManager {
		return nil
	}
	return c.startControllerManager(ctx, opts.Workloads)
}

// Stop stops everything that was started, managers included, in the order that
// loses nothing. Further calls do nothing.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true

	var errs []error
	for _, m := range c.managers {
		errs = append(errs, m.process.Stop(stopTimeout))
	}
	if c.controllerManager != nil {
		errs = append(errs, c.controllerManager.Stop(stopTimeout))
	}
	errs = append(errs, c.stopPlane())
	if c.reaper != nil {
		errs = append(errs, c.reaper.Release())
	}
	if c.temporary {
		errs = append(errs, os.RemoveAll(c.Dir))
	}
	return errors.Join(errs...)
}

// makeDir prepares the directory of the cluster.
func (c *Cluster) makeDir(dir string) (err error) {
	if dir == "" {
		c.temporary = true
		c.Dir, err = os.MkdirTemp("", "fencedlease-")
		return err
	}
	// The processes are known by this path on their command lines.
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("the directory of a new cluster must be empty: %s", dir)
	}
	c.Dir = dir
	return nil
}

// startPlane starts etcd and kube-apiserver.
func (c *Cluster) startPlane(ctx context.Context, opts Options) error {
	c.say("starting etcd and kube-apiserver")
	etcd, err := c.shim("etcd")
	if err != nil {
		return err
	}
	apiServer, err := c.shim("kube-apiserver")
	if err != nil {
		return err
	}
	etcdLog, err := os.Create(c.path("etcd.log"))
	if err != nil {
		return err
	}
	defer func() { _ = etcdLog.Close() }()
	apiServerLog, err := os.Create(c.path("kube-apiserver.log"))
	if err != nil {
		return err
	}
	defer func() { _ = apiServerLog.Close() }()

	c.plane.Etcd = &envtest.Etcd{
		Path: etcd, DataDir: c.path("etcd-data"), Out: etcdLog, Err: etcdLog,
		StartTimeout: startTimeout, StopTimeout: stopTimeout,
	}
	c.plane.APIServer = &envtest.APIServer{
		Path: apiServer, CertDir: c.path("kube-apiserver-certs"), Out: apiServerLog, Err: apiServerLog,
		StartTimeout: startTimeout, StopTimeout: stopTimeout,
	}
	c.plane.KubectlPath = c.kubectl
	for _, dir := range []string{c.plane.Etcd.DataDir, c.plane.APIServer.CertDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if opts.Workloads {
		servePods(c.plane.APIServer)
	}
	if err := setArguments(c.plane.APIServer.Configure(), opts.APIServerArgs); err != nil {
		return err
	}

	if err := c.plane.Start(); err != nil {
		return fmt.Errorf("start etcd and kube-apiserver: %w\netcd:\n%s\nkube-apiserver:\n%s", err,
			process.Tail(etcdLog.Name(), 5), process.Tail(apiServerLog.Name(), 20))
	}
	if err := c.connect(); err != nil {
		return err
	}
	return c.waitFor(ctx, startTimeout, "the namespace default", func(ctx context.Context) error {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// stopPlane stops kube-apiserver and etcd, whichever of them runs. The control
// plane's own Stop would do, if not for a kube-apiserver that failed to start:
// then only etcd is stopped by envtest.
func (c *Cluster) stopPlane() error {
	if c.plane.APIServer == nil || c.plane.Etcd == nil {
		return nil
	}
	return errors.Join(c.plane.APIServer.Stop(), c.plane.Etcd.Stop())
}

// setArguments puts --name=value arguments in place of those of the same name.
func setArguments(to *envtest.Arguments, args []string) error {
	values := map[string][]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || !strings.HasPrefix(name, "--") {
			return fmt.Errorf("an argument of kube-apiserver must be --name=value: %q", arg)
		}
		name = strings.TrimPrefix(name, "--")
		values[name] = append(values[name], value)
	}
	for name, list := range values {
		to.Set(name, list...)
	}
	return nil
}

// connect makes the administrator and what the other methods need of one.
func (c *Cluster) connect() (err error) {
	if c.Admin, err = c.UserConfig("admin", "system:masters"); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.Admin); err != nil {
		return err
	}
	c.KubeconfigPath = c.path("kubeconfig")
	return c.Kubeconfig(c.KubeconfigPath, c.Admin)
}

// shim is how a program of the control plane is started: see [process.Shim].
func (c *Cluster) shim(name string) (string, error) {
	path, err := Asset(name)
	if err != nil {
		return "", err
	}
	return process.Shim(c.Dir, name, path)
}

// path is that of a file in the cluster's directory.
func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }

// say tells the user about a step.
func (c *Cluster) say(step string) { _, _ = fmt.Fprintln(c.output, step) }
