// Package webhooks answers the API server's admission reviews: mint and its
// check on Leases, stamp and guard on guarded objects, one file each.
//
// A review takes one way through: its metadata is decoded (object.go), a
// question is put to package fence, the values that fence needs are read
// (state.go), and its answer is carried back (answer.go). The rules themselves
// are in package fence; which requests come here at all is in config/webhook.
package webhooks
