package scripts

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// leaseDuration is that of the stories here: a term is lost after two thirds of it
// without a renewal.
const (
	leaseDuration = 6 * time.Second
	renewDeadline = 4 * time.Second
)

// story is where most tests begin: FencedLease `payments`, under it a ConfigMap
// `state`, and beside it a ConfigMap `free` that nobody guards.
func story(t *testing.T) (*suite.World, host) {
	t.Helper()
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments", func(spec *v1alpha1.FencedLeaseSpec) { spec.LeaseDurationSeconds = int32(leaseDuration / time.Second) })
	w.Guarded("state", "payments", 0)
	w.Must(w.Admin.Create(w.Ctx, w.ConfigMap("free")))
	return w, newHost(w, w.Admin.Config)
}

// host is a machine on which somebody starts runs.
type host struct {
	w    *suite.World
	dir  string
	temp string // TMPDIR
	env  []string
}

// newHost is a machine whose kubeconfig is that of a user, in the test's namespace.
func newHost(w *suite.World, config *rest.Config) host {
	w.T.Helper()
	kubeconfig := w.Kubeconfig(config)
	h := host{w: w, dir: filepath.Dir(kubeconfig)}
	h.temp = filepath.Join(h.dir, "tmp")
	w.Must(os.Mkdir(h.temp, 0o700))
	kubectl, err := cluster.Asset("kubectl")
	w.Must(err)
	h.env = []string{
		"KUBECONFIG=" + kubeconfig, "KUBECACHEDIR=" + filepath.Join(h.dir, "cache"), "KUBERC=off", "HOME=" + h.dir, "TMPDIR=" + h.temp,
		"PATH=" + w.Plugins() + ":" + filepath.Dir(kubectl) + ":" + os.Getenv("PATH"), "DIRECT=" + suite.Cluster.Admin.Host,
	}
	return h
}

// with is the machine with environment variables, each name=value.
func (h host) with(env ...string) host {
	h.env = slices.Concat(h.env, env)
	return h
}

// file writes an executable file into the directory in which runs start.
func (h host) file(name, text string) {
	h.w.T.Helper()
	h.w.Must(os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o700))
}

// run starts `kubectl fence run payments`, with these flags and command. kubectl
// becomes the plugin, so the process is the run itself.
func (h host) run(args ...string) *process {
	h.w.T.Helper()
	return h.start("kubectl", append([]string{"fence", "run", "payments"}, args...)...)
}

// sh runs `kubectl fence run payments` with a shell script as the command.
func (h host) sh(script string, flags ...string) *process {
	h.w.T.Helper()
	return h.run(append(flags, "--", "sh", "-c", script)...)
}

// start starts a program, which ends with the test.
func (h host) start(name string, args ...string) *process {
	h.w.T.Helper()
	return h.startWith(func(*exec.Cmd) {}, name, args...)
}

func (h host) startWith(change func(*exec.Cmd), name string, args ...string) *process {
	h.w.T.Helper()
	p := &process{t: h.w.T, host: h, mark: "MARK=" + rand.String(20), done: make(chan struct{})}
	p.env = slices.Concat(os.Environ(), h.env, []string{p.mark})
	for _, variable := range p.env {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			for _, dir := range filepath.SplitList(path) {
				if candidate := filepath.Join(dir, name); !strings.Contains(name, "/") && isFile(candidate) {
					name = candidate
				}
			}
		}
	}
	p.cmd = exec.CommandContext(h.w.Ctx, name, args...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = h.dir, p.env, &p.stdout, &p.stderr
	p.cmd.WaitDelay = time.Second // what is left of it may hold its output
	change(p.cmd)
	h.w.Must(p.cmd.Start())
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	h.w.T.Cleanup(func() {
		for range 20 { // all, should the test have failed
			for _, pid := range p.marked() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		<-p.done
	})
	return p
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// process is a program that was started, and all that has come of it.
type process struct {
	t              *testing.T
	host           host
	cmd            *exec.Cmd
	env            []string
	mark           string // in the environment of all
	stdout, stderr output
	done           chan struct{}
}

// pid is the process id.
func (p *process) pid() int { return p.cmd.Process.Pid }

// signal sends a signal to the run alone.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	p.host.w.Must(syscall.Kill(p.pid(), s))
}

// marked are the processes that have come of the program, itself included.
func (p *process) marked() []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && slices.Contains(strings.Split(string(environ), "\x00"), p.mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// children are the processes of the command: those marked, but for ours.
func (p *process) children() []int {
	keeper := p.keeper()
	return slices.DeleteFunc(p.marked(), func(pid int) bool { return pid == p.pid() || pid == keeper })
}

// keeper is the process beside the run that watches over the command; 0 for none.
func (p *process) keeper() int {
	for _, pid := range p.marked() {
		cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && bytes.Contains(cmdline, []byte("\x00run-keeper\x00")) {
			return pid
		}
	}
	return 0
}

// prints waits until the command has printed something.
func (p *process) prints(text string) {
	p.t.Helper()
	p.awaits(&p.stdout, text)
}

// says waits until there is something on standard error.
func (p *process) says(text string) {
	p.t.Helper()
	p.awaits(&p.stderr, text)
}

func (p *process) awaits(in *output, text string) {
	p.t.Helper()
	for end := time.Now().Add(suite.Patience); !strings.Contains(in.String(), text); time.Sleep(10 * time.Millisecond) {
		select {
		case <-p.done:
			if strings.Contains(in.String(), text) {
				return
			}
			p.t.Fatalf("it has ended, and there is no %q in\n%s%s", text, p.stdout.String(), p.stderr.String())
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("there is still no %q in\n%s%s", text, p.stdout.String(), p.stderr.String())
		}
	}
}

// exits waits for the end, checks the exit status and parts of standard error, and
// that nothing is left, neither processes nor files. It returns standard output.
func (p *process) exits(status int, parts ...string) string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(suite.Patience):
		p.t.Fatalf("still running:\n%s%s", p.stdout.String(), p.stderr.String())
	}
	left := p.marked()
	stderr := p.stderr.String()
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Fatalf("exit status %d, want %d\n%s%s", got, status, p.stdout.String(), stderr)
	}
	for _, part := range parts {
		if !strings.Contains(stderr, part) {
			p.t.Errorf("standard error lacks %q:\n%s", part, stderr)
		}
	}
	if len(parts) == 0 && stderr != "" {
		p.t.Errorf("it says on standard error:\n%s", stderr)
	}
	for _, pid := range left {
		cmdline, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")) // if it still is there
		p.t.Errorf("process %d is left: %q", pid, cmdline)
	}
	p.host.clean()
	return p.stdout.String()
}

// clean checks that no temporary file is left.
func (h host) clean() {
	h.w.T.Helper()
	entries, err := os.ReadDir(h.temp)
	h.w.Must(err)
	if len(entries) > 0 {
		h.w.T.Errorf("temporary files are left: %v", entries)
	}
}

// output is what a program writes, to be read meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// holder is who has the Lease; "" for nobody.
func holder(w *suite.World) string {
	w.T.Helper()
	if holder := w.Lease("payments").Spec.HolderIdentity; holder != nil {
		return *holder
	}
	return ""
}

// released checks that nobody has the Lease.
func released(w *suite.World) {
	w.T.Helper()
	if holder := holder(w); holder != "" {
		w.T.Errorf("the Lease is still held by %q", holder)
	}
}

// errNotYet says that what is waited for is not so.
var errNotYet = errors.New("not yet")

// has is an error unless a text is on standard output so often.
func has(p *process, text string, times int) error {
	if strings.Count(p.stdout.String(), text) < times {
		return errNotYet
	}
	return nil
}
