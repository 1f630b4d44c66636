// Command kubectl-fence is the kubectl plugin `kubectl fence`: it shows what a
// FencedLease guards, puts objects under it, and carries a fencing token along
// with kubectl's own commands.
//
// Each verb has a file of its own. What they share is in factory.go (the cluster
// and the namespace that the flags name), token.go (the flag --token), objects.go
// (what is named on the command line) and errors.go (how a failure is told).
// Whether the installation is sound is found out by package soundness, which
// prints nothing, so that others can ask as well.
package main

import (
	"os"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	klog.SetLogger(logr.Discard()) // what client-go would log is in the errors as well
	failByPanic()
	if err := newCommand(streams).Execute(); err != nil {
		os.Exit(report(streams.ErrOut, err))
	}
}
