// Command node makes an embedded control plane a cluster of one node, for tests on
// Linux: it does what a scheduler, a kubelet and a container runtime do, as far as
// the tests need it. It needs root, and `ip` of iproute2. Everything happens in the
// network and mount namespace in which it is started.
//
// Every Pod is bound to this node, unless its nodeSelector or required node affinity
// says otherwise. It gets a network namespace with an address on a bridge, whose own
// address is the Pods' gateway: what listens on an address of the agent's namespace,
// like the API server on the address of Service kubernetes, is within their reach. A
// container is a process in a PID, mount, UTS and IPC namespace of its own. Its root
// file system is an overlay over the directory of an image, whose upper layer is
// memory and goes with the container. There is no registry: --image says which
// directory is which image.
//
// A container is killed when the agent ends, however that comes: its process has a
// parent-death signal, and takes its PID namespace along. The network namespaces have
// no names and go with the agent. Only the bridge and the files in --dir outlive an
// agent that is killed; the next one begins by removing them.
//
// What is not supported, and would change how a Pod behaves, is an error in the status
// of the Pod, with the reason NotSupported. These alone are ignored:
//   - resource requests and limits, priority and preemption, tolerations, taints and
//     cordons, preferred affinity, topology spread (one node is always evenly filled), size
//     limits and medium of an emptyDir;
//   - seccomp, AppArmor, SELinux; imagePullPolicy, imagePullSecrets;
//   - everything about names: there is no DNS, no /etc/hosts, no /etc/resolv.conf, and
//     of the Services only kubernetes has variables in the environment;
//   - changes of a Pod's spec after it was bound, other than its deletion.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	kubeconfig string
	name       string
	dir        string
	bridge     string
	address    netip.Prefix
	images     map[string]string // directories by the exact reference
	syncPeriod time.Duration
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == initCommand {
		becomeContainer() // does not return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := start(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

// start runs an agent with these arguments until the context ends.
func start(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("run this as root: it makes network interfaces and namespaces, and changes users")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("install iproute2: %w", err)
	}
	a, err := newAgent(o)
	if err != nil {
		return err
	}
	slog.Info("the node starts", "name", o.name, "dir", o.dir, "bridge", o.bridge, "address", o.address)
	return a.run(ctx)
}

func parse(args []string) (*options, error) {
	o := &options{images: map[string]string{}}
	flags := flag.NewFlagSet("node", flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of an administrator")
	flags.StringVar(&o.name, "name", "node", "name of the Node")
	flags.StringVar(&o.dir, "dir", "", "`directory` of the logs, <namespace>_<pod>_<container>.log, and of the Pods' files")
	flags.StringVar(&o.bridge, "bridge", "pods0", "name of the bridge, an interface that is the agent's alone")
	address := flags.String("address", "10.78.0.1/24", "address of the bridge, with the subnet of the Pods")
	flags.DurationVar(&o.syncPeriod, "sync-period", time.Second, "how often volumes are brought up to date")
	flags.Func("image", "`NAME=DIRECTORY`: the image NAME has its root file system in DIRECTORY/rootfs, and its OCI config is DIRECTORY/config.json; may be repeated", func(value string) error {
		name, dir, ok := strings.Cut(value, "=")
		if !ok || name == "" {
			return errors.New("want NAME=DIRECTORY")
		}
		dir, err := filepath.Abs(dir)
		o.images[name] = dir
		return err
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 || o.kubeconfig == "" || o.dir == "" {
		return nil, errors.New("give --kubeconfig and --dir, and flags only")
	}
	if o.syncPeriod <= 0 {
		return nil, errors.New("--sync-period must be more than 0")
	}
	var err error
	if o.address, err = netip.ParsePrefix(*address); err != nil {
		return nil, fmt.Errorf("--address: %w", err)
	}
	if !o.address.Addr().Is4() {
		return nil, errors.New("--address must be IPv4")
	}
	o.dir, err = filepath.Abs(o.dir)
	return o, err
}
