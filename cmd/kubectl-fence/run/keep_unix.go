//go:build unix

package run

import "github.com/fencedlease/fencedlease/cmd/kubectl-fence/run/keeper"

// Keeper is the name of the command that is [Keep].
const Keeper = keeper.Verb

// Keep is a process of ours beside the command: see [keeper.Main].
func Keep(args []string) error { return keeper.Main(args) }
