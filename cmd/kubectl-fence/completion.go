package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/completion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// completionTimeout bounds what a key press waits for.
const completionTimeout = 3 * time.Second

// completeLeases completes the name of a FencedLease, if there is none yet.
func (f *factory) completeLeases(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, err := f.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := f.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	list := &v1alpha1.FencedLeaseList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, toComplete) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeObjects completes KIND/NAME… and KIND NAME…, as kubectl does.
func (f *factory) completeObjects(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return completion.ResourceTypeAndNameCompletionFunc(f.kubectl())(cmd, args, toComplete)
}

// completeFlag completes the value of a flag that names a FencedLease.
func (f *factory) completeFlag(cmd *cobra.Command, flag string) {
	// Only a flag that does not exist is an error.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return f.completeLeases(cmd, nil, toComplete)
	})
}
