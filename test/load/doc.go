// Package load tests the guarantees under load on a real API server, for a fixed
// number of requests or a fixed time: the tokens of many hand-overs, renewals that
// never come to a webhook, the history of an object that many write at once, and
// the operator's own share of the API server.
package load
