// Package plugin tests the kubectl plugin as its users run it: the real kubectl
// finds the built program in its PATH, and it asks a real API server with
// FencedLease installed.
package plugin
