// Package soundness finds out whether an installation of FencedLease does what it
// is there for, and whether somebody may use it: by asking the API server, as any
// client would. It prints nothing and changes nothing; what it writes are dry runs.
package soundness

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// Level is how a check came out.
type Level string

const (
	// OK says that all is as it should be.
	OK Level = "ok"

	// Warning says that something does not work for everybody, or could not be
	// looked at.
	Warning Level = "warning"

	// Failed says that something essential does not work.
	Failed Level = "failed"
)

// Result is what a check found.
type Result struct {
	Check   string `json:"check"`
	Level   Level  `json:"level"`
	Message string `json:"message"` // what was found

	// Remedy is what to do; "" where the level is OK. Manifest is what to apply
	// for it, if there is something.
	Remedy   string `json:"remedy,omitempty"`
	Manifest string `json:"manifest,omitempty"`
}

// Sound says that nothing essential failed.
func Sound(results []Result) bool {
	for _, r := range results {
		if r.Level == Failed {
			return false
		}
	}
	return true
}

// Checker asks one API server, as one user.
type Checker struct {
	config    *rest.Config
	namespace string
	client    client.Client
	discovery discovery.DiscoveryInterface
}

// New is a Checker for whoever config is, which makes its dry runs in that
// namespace: not the operator's own, where nothing is fenced.
func New(config *rest.Config, namespace string) (*Checker, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Checker{config: config, namespace: namespace, client: c, discovery: d}, nil
}

func ok(check, message string) Result { return Result{Check: check, Level: OK, Message: message} }

func warning(check, message, remedy string) Result {
	return Result{Check: check, Level: Warning, Message: message, Remedy: remedy}
}

func failed(check, message, remedy string) Result {
	return Result{Check: check, Level: Failed, Message: message, Remedy: remedy}
}
