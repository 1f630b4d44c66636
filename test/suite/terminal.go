package suite

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// Kubeconfig writes a kubeconfig of somebody whose namespace is the test's, and
// returns its path, in a directory of its own.
func (w *World) Kubeconfig(config *rest.Config) string {
	w.T.Helper()
	path := filepath.Join(w.T.TempDir(), "kubeconfig")
	w.Must(w.cluster.Kubeconfig(path, config))
	written, err := clientcmd.LoadFromFile(path)
	w.Must(err)
	for _, c := range written.Contexts {
		c.Namespace = w.Namespace
	}
	w.Must(clientcmd.WriteToFile(*written, path))
	return path
}

// Plugins is a directory with the kubectl plugin, and what completes it, to go into
// a PATH. The plugin is $FENCEDLEASE_PLUGIN, or else it is built, once.
func (w *World) Plugins() string {
	w.T.Helper()
	dir, err := plugins()
	w.Must(err)
	return dir
}

var plugins = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(Cluster.Dir, "plugins")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	root, err := cluster.Root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, "cmd", "kubectl-fence")
	if err := os.Symlink(filepath.Join(source, "kubectl_complete-fence"), filepath.Join(dir, "kubectl_complete-fence")); err != nil {
		return "", err
	}
	plugin := filepath.Join(dir, "kubectl-fence")
	if built := os.Getenv("FENCEDLEASE_PLUGIN"); built != "" {
		return dir, os.Symlink(built, plugin)
	}
	output, err := exec.CommandContext(context.Background(), "go", "build", "-o", plugin, source).CombinedOutput()
	if err != nil {
		return "", errors.New(string(output))
	}
	return dir, nil
})
