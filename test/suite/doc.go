// Package suite is what the tests against a real API server share: one cluster
// and one manager for the tests of a package, a namespace of its own for each
// test, and short words for the actors and objects of a story.
package suite
