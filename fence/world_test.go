package fence_test

import "github.com/fencedlease/fencedlease/fence"

// world is as much of a cluster as the protocol sees: a Lease, the FencedLease
// that wraps it, guarded objects, and the webhooks in front of them. Nothing in
// it runs by itself. A stored value is never changed, only replaced, so that
// two reads of one revision are the same pointer.
type world struct {
	lease   *fence.Lease // nil: there is none
	fenced  *fencedLease // nil: there is none
	objects map[string]*object

	// What the watches of the guard have seen so far.
	watchedLease  *fence.Lease
	watchedFenced *fencedLease
}

// fencedLease is FencedLease "payments".
type fencedLease struct {
	status        fence.Token
	minToken      fence.Token
	identities    []fence.IdentityKind
	strictlyNewer bool
	cached        bool
	warn          bool
}

// object is a stored object.
type object struct {
	fence.Object
	uid       int // another one, if it is deleted and created again
	data      string
	status    string
	finalizer bool
}

func (w *world) live() fence.State { return stateOf(w.fenced, w.lease) }

func (w *world) watched() fence.State { return stateOf(w.watchedFenced, w.watchedLease) }

// catchUp lets the watches see everything.
func (w *world) catchUp() { w.watchedFenced, w.watchedLease = w.fenced, w.lease }

func stateOf(fl *fencedLease, lease *fence.Lease) fence.State {
	if fl == nil {
		return fence.State{Lease: fence.LeaseUnfenced}
	}
	keys := fence.Keys{}
	if lease != nil {
		keys = lease.Keys
	}
	return fence.State{
		Exists: true, Lease: fence.LeaseStateOf(keys, payments), LeaseKeys: keys, StatusToken: fl.status,
		Identities: fl.identities, StrictlyNewer: fl.strictlyNewer, Cached: fl.cached, Warn: fl.warn,
	}
}

// admitLease is the mint webhook and the check behind it: our keys after a
// write of the Lease. No webhook sees a Lease without our label.
func (w *world) admitLease(write *fence.LeaseWrite) (fence.Keys, *fence.Refusal) {
	if !write.New.Fenced() && (write.Old == nil || !write.Old.Fenced()) {
		return write.New.Keys, nil
	}
	plan := fence.PlanLease(*write)
	keys := plan.Keys
	if plan.Mints {
		fl := fence.FencedLease{}
		if w.fenced != nil && keys.FencedBy == payments {
			fl = fence.FencedLease{Exists: true, StatusToken: w.fenced.status, MinToken: w.fenced.minToken}
		}
		minted, refusal := plan.Mint(fl)
		if refusal != nil {
			return fence.Keys{}, refusal
		}
		keys = minted
	}
	final := *write
	final.New.Keys = keys
	return keys, fence.CheckLease(final)
}

// judge is the guard webhook: it reads as little as the verdict needs.
func (w *world) judge(request *fence.Request) fence.Verdict {
	if verdict, ok := fence.JudgeAlone(*request); ok {
		return verdict
	}
	watched := w.watched()
	if verdict := fence.Judge(*request, watched); fence.Final(verdict, watched) {
		return verdict
	}
	return fence.Judge(*request, w.live())
}

// objectWrite is a write to an object, on its way to the guard.
type objectWrite struct {
	operation   fence.Operation
	subresource string
	old         *object // nil for a create
	new         *object // nil for a delete
	writer      fence.Identity
	tokenExtra  []string
	bypassExtra []string
}

// stamp is the stamp webhook: a claim in the user extra becomes the annotation.
func (o *objectWrite) stamp() {
	if len(o.tokenExtra) == 1 && o.operation != fence.Delete && o.subresource == "" {
		o.new.Token = &o.tokenExtra[0]
	}
}

// request is what the guard sees of the write.
func (o *objectWrite) request() fence.Request {
	r := fence.Request{
		Operation: o.operation, Subresource: o.subresource, Writer: o.writer,
		TokenExtra: o.tokenExtra, BypassExtra: o.bypassExtra,
	}
	if o.old != nil {
		r.Old = &o.old.Object
	}
	if o.new != nil {
		r.New = &o.new.Object
	}
	if o.operation == fence.Update {
		r.Change = changeOf(o.old, o.new)
	}
	return r
}

// guarded says that the guard is called at all.
func (o *objectWrite) guarded() bool {
	return o.old != nil && o.old.GuardedBy != nil || o.new != nil && o.new.GuardedBy != nil
}

// changeOf compares two objects as the guard webhook does.
func changeOf(before, after *object) fence.Change {
	ourKeys := !same(before.GuardedBy, after.GuardedBy) || !same(before.Token, after.Token) ||
		!same(before.Write, after.Write) || !same(before.Bypass, after.Bypass)
	content := before.data != after.data || before.status != after.status
	finalizer := before.finalizer != after.finalizer
	return fence.Change{
		None:           !ourKeys && !content && !finalizer,
		OnlyOurKeys:    !content && !finalizer,
		OnlyFinalizers: !ourKeys && !content && finalizer && before.finalizer,
		OnlyOwnership:  !ourKeys && !content,
	}
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// tokenOf is the token on an object; [fence.None] if there is none.
func tokenOf(o *object) fence.Token {
	if o == nil || o.Token == nil {
		return fence.None
	}
	token, err := fence.ParseToken(*o.Token)
	if err != nil {
		return fence.None
	}
	return token
}
