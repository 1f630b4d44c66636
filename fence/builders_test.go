package fence_test

import "github.com/fencedlease/fencedlease/fence"

// The cast of the tables: anna leads under token 6, boris led under token 5.
const (
	payments = "payments"

	anna  = fence.Identity("pod/anna")
	boris = fence.Identity("pod/boris")

	annaCertificate  = fence.Identity("certificate/anna")
	borisCertificate = fence.Identity("certificate/boris")
	annaUser         = fence.Identity("user/anna")
	borisUser        = fence.Identity("user/boris")
)

// requestBuilder makes requests that write an object which "payments" guards.
type requestBuilder struct{ request fence.Request }

// makeCreate is a create of a guarded object without a token.
func makeCreate() *requestBuilder {
	return &requestBuilder{fence.Request{Operation: fence.Create, New: guardedObject("")}}
}

// makeUpdate is an update of an object with that mark ("" for none). It inherits
// everything, as a patch does that mentions none of our keys.
func makeUpdate(mark string) *requestBuilder {
	return &requestBuilder{fence.Request{Operation: fence.Update, Old: guardedObject(mark), New: guardedObject(mark)}}
}

// makeStatus is an update of the status of an object with that mark.
func makeStatus(mark string) *requestBuilder {
	b := makeUpdate(mark)
	b.request.Subresource = "status"
	return b
}

// makeDelete is a delete of an object with that mark.
func makeDelete(mark string) *requestBuilder {
	return &requestBuilder{fence.Request{Operation: fence.Delete, Old: guardedObject(mark)}}
}

// makeLabelling is an update that puts the label on an object, which may have
// had the annotation token already.
func makeLabelling(token string) *requestBuilder {
	b := makeUpdate(token)
	b.request.Old.GuardedBy = nil
	return b
}

func guardedObject(token string) *fence.Object {
	return &fence.Object{GuardedBy: new(payments), Token: present(token)}
}

// present is the value of a label or annotation; "" is an absent one.
func present(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}

func (b *requestBuilder) By(writer fence.Identity) *requestBuilder {
	b.request.Writer = writer
	return b
}

func (b *requestBuilder) User(name string) *requestBuilder {
	b.request.Username = name
	return b
}

// Token sets the annotation token of the new object; "" takes it off.
func (b *requestBuilder) Token(token string) *requestBuilder {
	b.request.New.Token = present(token)
	return b
}

// Nonce sets the annotation write of the new object.
func (b *requestBuilder) Nonce(write string) *requestBuilder {
	b.request.New.Write = present(write)
	return b
}

// StoredNonce sets the annotation write of the stored object.
func (b *requestBuilder) StoredNonce(write string) *requestBuilder {
	b.request.Old.Write = present(write)
	return b
}

// Extra sets the user extra token, and nothing else.
func (b *requestBuilder) Extra(tokens ...string) *requestBuilder {
	b.request.TokenExtra = tokens
	return b
}

// Stamped sets the user extra token, and the annotation as the stamp webhook
// does.
func (b *requestBuilder) Stamped(token string) *requestBuilder {
	return b.Extra(token).Token(token)
}

// GuardedBy sets the label of the new object; "" takes it off.
func (b *requestBuilder) GuardedBy(name string) *requestBuilder {
	b.request.New.GuardedBy = present(name)
	return b
}

// Bypass sets the annotation bypass of the new object.
func (b *requestBuilder) Bypass(reason string) *requestBuilder {
	b.request.New.Bypass = present(reason)
	return b
}

// StoredBypass sets the annotation bypass of the stored object.
func (b *requestBuilder) StoredBypass(reason string) *requestBuilder {
	b.request.Old.Bypass = present(reason)
	return b
}

// BypassExtra sets the user extra bypass.
func (b *requestBuilder) BypassExtra(reasons ...string) *requestBuilder {
	b.request.BypassExtra = reasons
	return b
}

// InDeletion gives the object a deletionTimestamp.
func (b *requestBuilder) InDeletion() *requestBuilder {
	for _, object := range []*fence.Object{b.request.Old, b.request.New} {
		if object != nil {
			object.InDeletion = true
		}
	}
	return b
}

// Nothing, OnlyOurKeys, OnlyFinalizers and OnlyOwnership say what changes.
func (b *requestBuilder) Nothing() *requestBuilder {
	b.request.Change = fence.Change{None: true, OnlyOurKeys: true}
	return b
}

func (b *requestBuilder) OnlyOurKeys() *requestBuilder {
	b.request.Change = fence.Change{OnlyOurKeys: true}
	return b
}

func (b *requestBuilder) OnlyFinalizers() *requestBuilder {
	b.request.Change = fence.Change{OnlyFinalizers: true, OnlyOwnership: true}
	return b
}

func (b *requestBuilder) OnlyOwnership() *requestBuilder {
	b.request.Change = fence.Change{OnlyOwnership: true}
	return b
}

func (b *requestBuilder) Obj() fence.Request { return b.request }

// stateBuilder makes the state of FencedLease "payments".
type stateBuilder struct{ state fence.State }

// makeState is token 6, held by anna; status.token mirrors it.
func makeState() *stateBuilder {
	return &stateBuilder{fence.State{
		Exists: true,
		Lease:  fence.LeaseOurs,
		LeaseKeys: fence.Keys{
			FencedBy: payments, Token: "6", TokenFor: "anna", TokenHolder: string(anna),
		},
		StatusToken: 6,
		Identities:  []fence.IdentityKind{fence.KindPod},
	}}
}

// Token sets the token of the Lease, and its mirror.
func (b *stateBuilder) Token(token fence.Token) *stateBuilder {
	b.state.LeaseKeys.Token, b.state.StatusToken = token.String(), token
	return b
}

// Status sets the token of the status alone.
func (b *stateBuilder) Status(token fence.Token) *stateBuilder {
	b.state.StatusToken = token
	return b
}

// HeldBy sets to whom the token was minted.
func (b *stateBuilder) HeldBy(holder string, writer fence.Identity) *stateBuilder {
	b.state.LeaseKeys.TokenFor, b.state.LeaseKeys.TokenHolder = holder, string(writer)
	return b
}

// NoTerm is a FencedLease whose Lease nobody ever held.
func (b *stateBuilder) NoTerm() *stateBuilder {
	b.state.LeaseKeys, b.state.StatusToken = fence.Keys{FencedBy: payments}, fence.None
	return b
}

// Unfenced takes the Lease away, or its label.
func (b *stateBuilder) Unfenced() *stateBuilder {
	b.state.Lease, b.state.LeaseKeys = fence.LeaseUnfenced, fence.Keys{}
	return b
}

// Retired is a Lease that waits to be adopted again.
func (b *stateBuilder) Retired() *stateBuilder {
	b.state.Lease, b.state.LeaseKeys.Retired = fence.LeaseRetired, "true"
	return b
}

// TakenBy is a Lease that another FencedLease wraps.
func (b *stateBuilder) TakenBy(fencedLease string) *stateBuilder {
	b.state.Lease, b.state.LeaseKeys.FencedBy = fence.LeaseTaken, fencedLease
	return b
}

// Missing is a FencedLease that does not exist.
func (b *stateBuilder) Missing() *stateBuilder {
	b.state = fence.State{Lease: fence.LeaseUnfenced}
	return b
}

// Unreadable is a state that could not be read in time.
func (b *stateBuilder) Unreadable(why string) *stateBuilder {
	b.state = fence.State{Unreadable: why}
	return b
}

func (b *stateBuilder) Identities(kinds ...fence.IdentityKind) *stateBuilder {
	b.state.Identities = kinds
	return b
}

func (b *stateBuilder) StrictlyNewer() *stateBuilder {
	b.state.StrictlyNewer = true
	return b
}

func (b *stateBuilder) Cached() *stateBuilder {
	b.state.Cached = true
	return b
}

func (b *stateBuilder) Warn() *stateBuilder {
	b.state.Warn = true
	return b
}

func (b *stateBuilder) Obj() fence.State { return b.state }

// leaseBuilder makes Leases.
type leaseBuilder struct{ lease fence.Lease }

// makeLease is a Lease that "payments" wraps and that nobody ever held.
func makeLease() *leaseBuilder {
	return &leaseBuilder{fence.Lease{Keys: fence.Keys{FencedBy: payments}}}
}

// makeHeldLease is the Lease that anna holds under token 6.
func makeHeldLease() *leaseBuilder {
	return makeLease().Holder("anna").AcquiredAt("10:00").RenewedAt("10:05").Transitions("1").Minted("6", "anna", anna)
}

func (b *leaseBuilder) Holder(identity string) *leaseBuilder {
	b.lease.Holder = identity
	return b
}

func (b *leaseBuilder) AcquiredAt(time string) *leaseBuilder {
	b.lease.AcquireTime = time
	return b
}

func (b *leaseBuilder) RenewedAt(time string) *leaseBuilder {
	b.lease.RenewTime = time
	return b
}

func (b *leaseBuilder) Transitions(count string) *leaseBuilder {
	b.lease.Transitions = count
	return b
}

// Minted sets the annotations that go with a token.
func (b *leaseBuilder) Minted(token, holder string, writer fence.Identity) *leaseBuilder {
	b.lease.Token, b.lease.TokenFor, b.lease.TokenHolder = token, holder, string(writer)
	return b
}

func (b *leaseBuilder) Retired() *leaseBuilder {
	b.lease.Retired = "true"
	return b
}

// FencedBy sets the label; "" takes it off.
func (b *leaseBuilder) FencedBy(name string) *leaseBuilder {
	b.lease.FencedBy = name
	return b
}

func (b *leaseBuilder) Obj() *fence.Lease { return &b.lease }
