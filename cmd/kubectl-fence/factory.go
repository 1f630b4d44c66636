package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

const (
	// requestTimeout is the deadline of each request where --request-timeout
	// names none.
	requestTimeout = timeout(30 * time.Second)

	// fieldManager is who owns the fields that the plugin writes.
	fieldManager = "kubectl-fence"

	// A status asks for every kind of custom resource there is: client-go's
	// limits are for controllers, which ask all the time.
	requestsPerSecond = 50
	requestBurst      = 300

	// pageSize is how many objects a list asks for at once.
	pageSize = 500
)

// factory is what each verb gets: the flags that name a cluster and a namespace,
// and where to print. It reads no file and asks no server before a verb does.
type factory struct {
	*genericclioptions.ConfigFlags
	genericiooptions.IOStreams

	timeout timeout
}

// timeout is --request-timeout, in the place of ConfigFlags' own: with that one set,
// client-go does not see that it is in a Pod.
type timeout time.Duration

// String is how the flag is printed.
func (t *timeout) String() string { return time.Duration(*t).String() }

// Type is what the flag takes.
func (t *timeout) Type() string { return "string" }

// Set reads the flag as kubectl does: 0 is for none.
func (t *timeout) Set(value string) error {
	parsed, err := clientcmd.ParseTimeout(value)
	*t = timeout(parsed)
	return err
}

// AddFlags adds the flags that all verbs have.
func (f *factory) AddFlags(flags *pflag.FlagSet) {
	f.ConfigFlags.AddFlags(flags)
	flags.Var(&f.timeout, "request-timeout", "The length of time to wait before giving up on a single request. Non-zero values should contain a time unit (e.g. 1s, 2m, 3h). A value of zero means don't timeout requests.")
}

func newFactory(streams genericiooptions.IOStreams) *factory {
	f := &factory{ConfigFlags: genericclioptions.NewConfigFlags(true), IOStreams: streams, timeout: requestTimeout}
	f.Timeout = nil     // see timeout
	f.BearerToken = nil // --token is a fencing token
	f.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.Timeout = time.Duration(f.timeout)
		config.QPS, config.Burst = requestsPerSecond, requestBurst
		config.WarningHandler = rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		return config
	}
	f.WithDiscoveryQPS(requestsPerSecond).WithDiscoveryBurst(requestBurst)
	return f
}

// namespace is the one that the flags or the kubeconfig name.
func (f *factory) namespace() (string, error) {
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// client reads and writes our kinds and the built-in ones, live.
func (f *factory) client() (client.Client, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper, err := f.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
}

// kubectl is what kubectl's own commands ask for.
func (f *factory) kubectl() cmdutil.Factory { return cmdutil.NewFactory(f.ConfigFlags) }

// wrap changes the configuration of every client that is made from here on.
func (f *factory) wrap(change func(*rest.Config) *rest.Config) {
	before := f.WrapConfigFn
	f.WrapConfigFn = func(config *rest.Config) *rest.Config { return change(before(config)) }
}

// fencedLease reads a FencedLease. That it does not exist is an error which says
// where to look.
func (f *factory) fencedLease(ctx context.Context, c client.Client, namespace, name string) (*v1alpha1.FencedLease, error) {
	fl := &v1alpha1.FencedLease{}
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, fl)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("FencedLease %q does not exist in namespace %q: `kubectl fence status -A` lists all", name, namespace)
	}
	return fl, err
}

// ago is the time since then, for people.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return unknown
	}
	return humanDuration(now.Sub(then))
}
