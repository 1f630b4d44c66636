package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Output is what a kubectl command left behind.
type Output struct {
	Stdout, Stderr string
	ExitCode       int
}

// Kubectl runs the real kubectl as the administrator; to run it as somebody
// else, pass --kubeconfig. A command that fails is no error: see ExitCode. The
// user's own kubectl configuration and cache are neither read nor written.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (Output, error) {
	return c.KubectlInput(ctx, "", args...)
}

// KubectlInput is Kubectl with something to read on its standard input.
func (c *Cluster) KubectlInput(ctx context.Context, stdin string, args ...string) (Output, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, c.kubectl, args...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	command.Env = append(os.Environ(),
		"KUBECONFIG="+c.KubeconfigPath,
		"KUBECACHEDIR="+c.path("kubectl-cache"),
		"KUBERC=off",
		"HOME="+c.Dir,
	)
	err := command.Run()
	out := Output{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: command.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return out, fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// mustKubectl is KubectlInput for commands that have no reason to fail; it
// returns their standard output.
func (c *Cluster) mustKubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, kubectlTimeout)
	defer cancel()
	out, err := c.KubectlInput(ctx, stdin, args...)
	if err != nil {
		return "", err
	}
	if out.ExitCode != 0 {
		return "", fmt.Errorf("kubectl %s: exit status %d\n%s", strings.Join(args, " "), out.ExitCode, out.Stderr)
	}
	return out.Stdout, nil
}
