// Package fence is the protocol of FencedLease, and nothing else: values in,
// a verdict out. It has no client, no clock and no Kubernetes machinery; the
// packages around it read the world, call it, and carry out what it says.
//
// # The problem
//
// A Lease says who may be the leader. It cannot stop an old leader that was
// paused, by a garbage collector, a hypervisor or SIGSTOP, from waking up and
// writing over what its successor wrote. No clock can either. The remedy is
// a fencing token: a number that grows with every change of leader and that
// the storage checks in the same transaction as the write. Here the storage is
// the API server, and the check is its admission, which runs inside its own
// compare-and-swap loop on the very object whose revision is then compared.
//
// # The words
//
// A term is one holding of the Lease. Each term gets one [Token], larger by one
// than the last. The newest token minted is current. A request presents a
// [Claim]. The token stored on a guarded object, the highest that ever wrote
// it, is its mark. Who made a request, as admission sees it, is its [Identity].
// Sealing an object is writing current to it with no other change: it shuts out
// all older tokens for good.
//
// # Minting
//
// The token rides on the acquisition itself. [PlanLease] looks at a write of a
// fenced Lease and says what our keys must be afterwards: unchanged (M4), or a
// new token (M1 to M3), for which the FencedLease has to be read; [Plan.Mint]
// then works out its value. [CheckLease] applies the same rules to the Lease as
// it would be stored, in case another webhook ran in between (M8).
//
// # Guarding
//
// [Judge] decides about a write to a guarded object by trying the rows G1 to
// G12 in order; the first that applies is the answer:
//
//	claim   <  mark or current     412  FencingTokenStale        the late writer
//	no claim                       428  FencingTokenRequired     it must present one
//	claim   >  current             403  FencingTokenNeverIssued  a forgery
//	claim   == current >= mark     allowed, and the claim becomes the mark
//
// The other rows are about what a claim cannot be compared with: a malformed
// token, a FencedLease that is gone or unreadable, a counter that was lost.
// A token that a write merely inherits from the stored object, as every
// get-modify-put and most patches do, is no claim.
//
// [Final] says which verdicts may be given on values from a cache, and
// [BreakGlass] turns a refusal into an admission for somebody who may.
package fence
