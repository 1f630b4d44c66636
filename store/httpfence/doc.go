// Package httpfence checks fencing tokens in an HTTP service, and sends them along from
// its clients: a request of an old leader that wakes up too late is refused by the
// service itself.
//
// # The protocol
//
// A request presents its token in the header Fencing-Token, once, in canonical base 10
// (from 1 to 2^53-1). The service keeps the mark of each resource: the highest token that
// ever worked on it. A smaller one is refused. The refusals are problem details (RFC 9457),
// with the resource, the presented token and the mark beside the message:
//
//	412  FencingTokenStale     a newer term has been there: you are not the leader, stop
//	422  FencingTokenInvalid   the token is malformed
//	428  FencingTokenRequired  the request presents no token (RFC 6585, section 3)
//	503  FenceUnavailable      the mark cannot be read now: nothing was done, try again
//
// They have the codes and reasons of the API server's guard. Safe methods (RFC 9110,
// section 9.2.1) pass without a token: reads are not fenced.
//
// # The service
//
// [Guard] is middleware. It raises the mark and holds it while the handler works, so that
// no other request gets past it for the same resource in between. Where its marks are in
// an SQL database ([SQL]) that is a transaction, and a handler that does its own work in
// it, [Tx], commits both or neither.
//
// # The client
//
// [Transport] puts the token into the requests: that of a term of package leader
// ([OfTerm]), or the one that kubectl fence run gives its command ([Environment]).
//
// # What it leaves to others
//
// Who a client is: whoever may send a request may present any token, so authenticate
// clients as ever. A token larger than any that was minted would lock out everybody else.
package httpfence
