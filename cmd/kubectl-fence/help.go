package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The groups in which the verbs are listed.
const (
	groupLook       = "look"
	groupWrite      = "write"
	groupAdminister = "administer"
)

func addGroups(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupLook, Title: "See what there is:"},
		&cobra.Group{ID: groupWrite, Title: "Write with a token:"},
		&cobra.Group{ID: groupAdminister, Title: "Administer:"},
	)
}

// in lists a verb in a group.
func in(group string, cmd *cobra.Command) *cobra.Command {
	cmd.GroupID = group
	return cmd
}

// inheritedFlags is the part of cobra's template that has the flags of all verbs
// at the end of the help for each.
const inheritedFlags = "\n\nGlobal Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}"

// usageTemplate is cobra's, but for the flags that are the same everywhere.
func usageTemplate(of *cobra.Command) string {
	return strings.Replace(of.UsageTemplate(), inheritedFlags,
		"\n\n`kubectl fence --help` has the flags of all commands, such as -n and --context.", 1)
}

// seeHelp says where the flags and arguments of a command are explained.
func seeHelp(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
}

// arguments checks how many there are, and says where they are explained.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return seeHelp(cmd, err)
		}
		return nil
	}
}

// text is a raw string of the source without the tabs that it is indented with.
func text(raw string) string {
	lines := strings.Split(strings.Trim(raw, "\n\t"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.Join(lines, "\n")
}

// examples are text, indented as cobra's examples are.
func examples(raw string) string {
	return "  " + strings.ReplaceAll(strings.ReplaceAll(text(raw), "\n", "\n  "), "\n  \n", "\n\n")
}
