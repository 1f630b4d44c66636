// Package scripts tests `kubectl fence run` as authors of scripts use it: the real
// kubectl finds the built plugin in its PATH, which runs real shell scripts against
// a real API server with FencedLease installed. Its tests run every block of
// docs/scripts.md.
package scripts
