package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fencedlease/fencedlease/cmd/kubectl-fence/soundness"
)

// checkInterval is how long --wait waits between two looks.
const checkInterval = 2 * time.Second

// check finds out whether the installation is sound.
type check struct {
	*factory

	output       string
	wait         time.Duration
	installation bool
}

func newCheck(f *factory) *cobra.Command {
	c := &check{factory: f}
	cmd := &cobra.Command{
		Use:   "check [--wait DURATION]",
		Short: "Check the installation, and what you may do",
		Long: text(`
			Check whether the installation is sound: whether the API server serves FencedLeases, has
			all webhooks and trusts their certificates, and whether it calls them. That is found out
			with dry runs in the namespace that -n names: nothing is created.

			Then, what you may do: take a fenced Lease, and impersonate yourself, which carries a
			token beside requests that have no room for one. If you may not, it is a
			warning, with the role for an administrator to apply.

			✓ is fine, ! is a warning, and ✗ has failed: then the exit status is 1. Each ! and ✗ comes
			with what to do. With -o json or yaml it is a CheckResult of cli.fencedlease.io/v1: fields
			may be added, none is renamed or removed.`),
		Example: examples(`
			# Now
			kubectl fence check

			# After an installation: until it is sound, or 2 minutes have passed
			kubectl fence check --wait=2m

			# For a user, in a namespace
			kubectl fence check -n prod --as=ann`),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().StringVarP(&c.output, "output", "o", "", `Output format: "json" or "yaml".`)
	cmd.Flags().DurationVar(&c.wait, "wait", 0, "Check again until nothing fails, for so long.")
	cmd.Flags().BoolVar(&c.installation, "installation-only", false, "Do not check what you may do.")
	return cmd
}

// checkReport is what `check -o json` prints. Its JSON is stable: fields may be
// added.
type checkReport struct {
	metav1.TypeMeta `json:",inline"`

	Sound  bool               `json:"sound"`
	Checks []soundness.Result `json:"checks"`
}

func (c *check) run(ctx context.Context) error {
	results, err := c.until(ctx, time.Now().Add(c.wait))
	if err != nil {
		return err
	}
	sound := soundness.Sound(results)
	if c.output == "" {
		err = printResults(c.Out, results)
	} else {
		err = writeAs(c.Out, c.output, checkReport{TypeMeta: reportType("CheckResult"), Sound: sound, Checks: results})
	}
	if err == nil && !sound {
		err = errors.New("the installation is not sound, or you may not use it: see what failed above")
	}
	return err
}

// until checks until nothing fails, or it is too late. It says what it waits for,
// when that changes.
func (c *check) until(ctx context.Context, end time.Time) ([]soundness.Result, error) {
	said := ""
	for {
		results, err := c.once(ctx)
		if err != nil || soundness.Sound(results) || !time.Now().Add(checkInterval).Before(end) {
			return results, err
		}
		for _, result := range results {
			if waiting := result.Check + ": " + result.Message; result.Level == soundness.Failed {
				if waiting != said {
					_, _ = fmt.Fprintf(c.ErrOut, "Waiting for %s\n", waiting)
				}
				said = waiting
				break
			}
		}
		select {
		case <-ctx.Done():
			return results, ctx.Err()
		case <-time.After(checkInterval):
		}
	}
}

func (c *check) once(ctx context.Context) ([]soundness.Result, error) {
	config, err := c.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	checker, err := soundness.New(config, namespace)
	if err != nil {
		return nil, err
	}
	results := checker.Installation(ctx)
	if !c.installation {
		results = append(results, checker.Caller(ctx)...)
	}
	return results, nil
}

// signs are how the levels are shown.
var signs = map[soundness.Level]string{soundness.OK: "✓", soundness.Warning: "!", soundness.Failed: "✗"}

// printResults prints a table, and what to do about all that is not fine.
func printResults(to io.Writer, results []soundness.Result) error {
	w := printers.GetNewTabWriter(to)
	for _, r := range results {
		_, _ = fmt.Fprintf(w, "%s %s\t%s\n", signs[r.Level], r.Check, r.Message) // Flush tells
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range results {
		if r.Level != soundness.OK {
			fmt.Fprintf(&text, "\n%s %s\n  Do: %s.\n", signs[r.Level], r.Check, r.Remedy)
		}
		if r.Manifest != "" {
			text.WriteString("\n" + r.Manifest)
		}
	}
	_, err := io.WriteString(to, text.String())
	return err
}
