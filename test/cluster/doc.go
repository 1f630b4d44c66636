// Package cluster is a real control plane for tests and demos: etcd,
// kube-apiserver and kube-controller-manager as processes on the loopback
// interface, the manifests of config/ applied with the real kubectl, and the
// manager binary as a process with exactly the rights that config/rbac gives it.
//
//	c, err := cluster.Start(ctx, cluster.Options{})
//	defer c.Stop()
//	err = c.Install(ctx)
//	manager, err := c.StartManager(ctx, cluster.ManagerOptions{})
//
// It needs no test framework, so commands can use it, and leaves what is tested
// to its callers. There are no nodes: Pods exist as objects only.
package cluster
