package main

import (
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
