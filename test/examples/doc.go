// Package examples runs the programs of examples/ as processes against a real
// control plane, each until it has lost its Lease, and holds docs/controllers.md to
// what they say.
package examples
