package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fencedlease/fencedlease/test/cluster/process"
)

// ManagerOptions say how to run a manager. The zero value is what an
// installation has, on the loopback interface.
type ManagerOptions struct {
	// Binary is the manager's program; a relative path starts at the root of the
	// repository. Defaults to $FENCEDLEASE_MANAGER, or else to bin/manager.
	Binary string

	// LogPath is a file to which its output is appended. Defaults to a file in
	// the cluster's directory.
	LogPath string

	// OwnPort has it listen on a port of its own, at [Manager.WebhookAddress], and
	// not where the API server calls. A second manager needs it.
	OwnPort bool

	// ExtraArgs come last, so they override what the harness sets.
	ExtraArgs []string

	// APIServer is the URL at which it reaches the API server, through a proxy
	// for instance. Defaults to the API server's own.
	APIServer string

	// NotInForce returns as soon as the manager says that it is ready, without
	// making sure that the API server calls its webhooks.
	NotInForce bool
}

// Manager is the manager binary as a process. It is not safe for use by several
// goroutines at once.
type Manager struct {
	// LogPath is the file with its output, over all restarts.
	LogPath string

	cluster     *Cluster
	name        string
	binary      string
	args        []string
	webhookPort int
	metricsPort int
	healthPort  int
	inForce     bool
	process     *process.Process
}

// StartManager runs a manager as the service account that config/ gives it, with
// a token of its own: exactly the rights of config/rbac. It returns once the
// manager is ready and the API server calls the webhooks that Install applied.
func (c *Cluster) StartManager(ctx context.Context, opts ManagerOptions) (*Manager, error) {
	c.say("starting the manager")
	if c.webhook.port == 0 {
		return nil, errors.New("call Install before StartManager")
	}
	m, err := c.newManager(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := m.start(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// newManager prepares a manager: its ports, its identity, its arguments.
func (c *Cluster) newManager(ctx context.Context, opts ManagerOptions) (_ *Manager, err error) {
	c.mu.Lock()
	number := len(c.managers) + 1
	c.mu.Unlock()

	m := &Manager{cluster: c, name: fmt.Sprintf("manager-%d", number), LogPath: opts.LogPath, inForce: !opts.NotInForce}
	if m.binary, err = c.managerBinary(opts.Binary); err != nil {
		return nil, err
	}
	if m.LogPath == "" {
		m.LogPath = c.path(m.name + ".log")
	}
	m.webhookPort = c.webhook.port
	if opts.OwnPort {
		if m.webhookPort, err = FreePort(ctx); err != nil {
			return nil, err
		}
	}
	if m.metricsPort, err = FreePort(ctx); err != nil {
		return nil, err
	}
	if m.healthPort, err = FreePort(ctx); err != nil {
		return nil, err
	}
	cfg, err := c.tokenConfig(ctx, Namespace, ServiceAccount, nil)
	if err != nil {
		return nil, err
	}
	cfg.Host = cmp.Or(opts.APIServer, cfg.Host)
	kubeconfig := c.path(m.name + ".kubeconfig")
	if err := c.Kubeconfig(kubeconfig, cfg); err != nil {
		return nil, err
	}
	m.args = append([]string{
		"--kubeconfig=" + kubeconfig,
		"--namespace=" + Namespace,
		"--webhook-host=" + localhost,
		fmt.Sprintf("--webhook-port=%d", m.webhookPort),
		"--webhook-cert-dir=" + c.webhook.certDir,
		"--webhook-dns-name=" + webhookService + "." + Namespace + ".svc",
		"--metrics-bind-address=" + address(m.metricsPort),
		"--health-probe-bind-address=" + address(m.healthPort),
		"--shutdown-delay=0s", // nobody follows its readiness
	}, opts.ExtraArgs...)
	return m, nil
}

// managerBinary is the absolute path of the manager to run.
func (c *Cluster) managerBinary(path string) (string, error) {
	if path == "" {
		path = cmp.Or(os.Getenv("FENCEDLEASE_MANAGER"), filepath.Join("bin", "manager"))
	}
	if !filepath.IsAbs(path) {
		// Tests run in the directories of their packages.
		path = filepath.Join(c.root, path)
	}
	return program(path, "make build")
}

// start runs the process and waits until it does its work.
func (m *Manager) start(ctx context.Context) error {
	if err := m.run(); err != nil {
		return err
	}
	err := waitUnless(ctx, m.process.Done(), startTimeout, "the manager", m.Ready)
	if err == nil && m.inForce {
		err = m.cluster.waitForWebhooks(ctx, m.process.Done())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w\n%s", err, process.Tail(m.LogPath, 20)), m.process.Stop(stopTimeout))
	}
	return nil
}

// Ready is an error unless the manager says that it is ready. It is safe for use by
// several goroutines.
func (m *Manager) Ready(ctx context.Context) error {
	_, err := get(ctx, m.healthPort, "/readyz")
	return err
}

// WebhookAddress is where the manager serves its webhooks.
func (m *Manager) WebhookAddress() string { return address(m.webhookPort) }

// run starts the process, unless the cluster was stopped meanwhile.
func (m *Manager) run() error {
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	if m.cluster.stopped {
		return errors.New("the cluster is stopped")
	}
	first := m.process == nil
	var err error
	if m.process, err = process.Start(m.cluster.Dir, m.name, m.binary, m.LogPath, m.args...); err != nil {
		return err
	}
	if first {
		m.cluster.managers = append(m.cluster.managers, m)
	}
	return nil
}

// Stop ends the manager the way a kubelet does: SIGTERM, and SIGKILL after a
// grace period, or earlier when ctx ends. The error says if it had to be killed
// or ended with a status other than 0.
func (m *Manager) Stop(ctx context.Context) error {
	grace := stopTimeout
	if deadline, ok := ctx.Deadline(); ok {
		grace = min(grace, time.Until(deadline))
	}
	return m.process.Stop(grace)
}

// Kill ends the manager with SIGKILL: a crash.
func (m *Manager) Kill() error { return m.process.Kill() }

// Pause stops the manager in its tracks, with SIGSTOP: its connections stay
// open, and nothing answers.
func (m *Manager) Pause() error { return m.process.Pause() }

// Resume lets a paused manager run on.
func (m *Manager) Resume() error { return m.process.Resume() }

// Restart stops the manager, if it runs, and starts it anew with the same
// arguments and ports. It returns when StartManager would.
func (m *Manager) Restart(ctx context.Context) error {
	select {
	case <-m.process.Done():
	default:
		if err := m.Stop(ctx); err != nil {
			return err
		}
	}
	return m.start(ctx)
}

// Done is closed when the manager has ended, until it is restarted.
func (m *Manager) Done() <-chan struct{} { return m.process.Done() }

// Log is what the manager has written so far, over all restarts.
func (m *Manager) Log() string {
	data, err := os.ReadFile(m.LogPath)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
