// Package kubectl tests FencedLease with nothing but the real kubectl, as the
// author of a script and an administrator at a terminal use it. Its tests run
// every recipe, and every row of the table, of docs/kubectl.md.
package kubectl
