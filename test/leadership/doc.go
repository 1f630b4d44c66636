// Package leadership tests the package leader on a real control plane, with
// candidates that are processes of their own where they are paused or killed.
package leadership
