// Package leader is fenced leadership for programs: leader election on a Lease
// that hands out fencing tokens, and clients whose writes carry them.
//
// # What it adds to leader election
//
// client-go's leader election says who may lead. It cannot stop a leader that was
// paused: for up to its RenewDeadline after it has read another holder's name, the
// context of its work stays alive and its writes go out. Where a FencedLease wraps
// the Lease, the API server refuses such writes on guarded objects. This package
// stops them at the source, and gives every other write the token that it needs:
//
//   - The election is client-go's own, with as many requests. The token comes with
//     the answer to the write that acquires the Lease.
//   - Work runs in a [Term]. The moment that any answer of the API server shows
//     another holder or a newer token, or that the Lease is not proven for
//     [Options.RenewDeadline], the term's context is cancelled.
//   - A write outside a live term fails in the process, with [ErrNoTerm] or a
//     [LostError], and nothing is sent.
//   - Objects to be sealed ([Options.Seal], [Term.Seal]) are sealed before work
//     starts: no write of an earlier term that is still in flight lands on them.
//
// The Lease needs a FencedLease of its namespace whose leaseName is the Lease's
// name. Without one, or before it is Ready, a candidate may hold the Lease, but its
// work does not start; the log says why.
//
// # With controller-runtime
//
// Replace ctrl.NewManager by [NewManager]. Reconcilers stay as they are: what they
// write through mgr.GetClient() carries the token of the term.
//
//	mgr, _, err := leader.NewManager(config, ctrl.Options{
//		LeaderElectionID:        "payments",
//		LeaderElectionNamespace: "prod",
//	}, leader.Options{})
//
// # With client-go
//
// Make an election with [New], a client from its [Election.Config], and do the work
// in [Election.Run], with the context that it gives:
//
//	election, err := leader.New(config, leader.Options{Namespace: "prod", Name: "payments"})
//	…
//	client, err := kubernetes.NewForConfig(election.Config(config))
//	…
//	err = election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
//		_, err := client.CoreV1().ConfigMaps("prod").Update(ctx, account, metav1.UpdateOptions{})
//		return err
//	})
//
// With an elector of your own, give it [Election.Lock].
//
// # When a term is lost
//
// In this order: the term's Err is set and its context cancelled, with a
// [LostError] as the cause; [Election.Term] is nil; writes that are on their way
// are cut off, and return an error for which [IsFenced] is true, as do all that
// follow. One exception: a client of client-go's that is called with a context
// that is over already may return a plain [context.Canceled], before it asks
// anybody; [context.Cause] of the context is the LostError.
//
// Whether a write that was cut off has been stored is not known, as with every
// request whose answer is lost. [Election.Run] waits for the work to return and
// competes again; a manager of [NewManager] ends.
//
// Expired is not superseded. A candidate that could not renew for a while loses its
// term ([ErrUnproven]), since others may take the Lease any time. If none did, the
// same identity that acquires the Lease again gets the same token again: what its
// last term wrote is still the newest, and so is what it writes next. A candidate
// that was superseded ([ErrSuperseded]) gets a new token, and must read anew before
// it writes.
//
// A token may rise while its term goes on. [Term.Token] follows, from the answer to
// the renewal in which it rose.
//
// # What it does not do
//
// It does not replace the guard. A process that is paused between the last check
// and the write sends that write when it wakes up; only the API server can refuse
// it. And a lease is a matter of clocks: two processes may both believe for a moment
// that they lead. Their tokens differ, and only the larger one counts.
//
// Reads are not fenced. Neither are writes to objects without the label
// fencedlease.io/guarded-by, though they too stop with the term.
package leader
