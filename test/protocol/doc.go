// Package protocol tests the rules M1 to M10 and G1 to G12 against a real API
// server, each in a test named after it; docs/protocol.md maps rule to test.
package protocol
