package main

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"
)

// completionScript is what kubectl's shell completion runs.
//
//go:embed kubectl_complete-fence
var completionScript string

func newCompletion(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "completion",
		Short: "Print the script that completes commands in a shell",
		Long: text(`
			Print the script through which kubectl's own shell completion completes "kubectl fence"
			as well: verbs, flags, and the names of FencedLeases and objects.

			It belongs in your PATH under the name kubectl_complete-fence. The completion of kubectl
			itself is set up with "kubectl completion".`),
		Example: examples(`
			# Beside the plugin
			script="$(dirname "$(command -v kubectl-fence)")/kubectl_complete-fence"
			kubectl fence completion > "$script" && chmod +x "$script"`),
		Args: arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(f.Out, completionScript)
			return err
		},
	}
}
