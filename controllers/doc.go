// Package controllers keeps each FencedLease and its Lease in step: it puts our
// label on the Lease (adopt.go), mirrors holder and token into the status
// (status.go), and keeps the counter of a FencedLease that is gone (retire.go).
// It never writes a token: the mint webhook does, in the writes of others.
package controllers
