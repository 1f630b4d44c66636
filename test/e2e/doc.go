// Package e2e has one test: the life of an installation, on a node. The commands are
// those of docs/install.md. The Pods of the chart run as processes in network
// namespaces (test/node), and the API server reaches them through Service and
// EndpointSlice, as in production. It needs root, and Linux.
package e2e
