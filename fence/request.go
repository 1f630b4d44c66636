package fence

import "strings"

// Operation is what a request does to an object.
type Operation string

// The operations that are judged. Patch and apply are updates, or creates.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Object is what the protocol reads of a guarded object. A nil string is an
// absent label or annotation.
type Object struct {
	GuardedBy  *string // label guarded-by
	Token      *string // annotation token
	Write      *string // annotation write
	Bypass     *string // annotation bypass
	InDeletion bool    // it has a deletionTimestamp
}

// Request is a write to a guarded object: the stored object, the new one, or
// both, is labelled guarded-by.
type Request struct {
	Operation   Operation
	Subresource string  // "" or "status"
	Old         *Object // nil for a create
	New         *Object // nil for a delete
	Username    string
	Writer      Identity

	TokenExtra  []string // user extra token; nil if absent
	BypassExtra []string // user extra bypass; nil if absent

	Change Change
}

// NeedsChange says that the verdict may depend on what it is that differs between
// the stored and the new object, so that Change must be worked out in full.
func (r Request) NeedsChange() bool {
	if r.Old == nil || r.New == nil {
		return false
	}
	return r.Old.InDeletion || r.Old.guarded() && !r.New.guarded() || r.Username == allControllers
}

// Change is what the protocol needs to know of the difference between the
// stored and the new object. It is empty for creates and deletes.
type Change struct {
	None           bool // the two are equal byte for byte
	OnlyOurKeys    bool // nothing but our label, our annotations and managedFields
	OnlyFinalizers bool // finalizers were taken off, and nothing else but managedFields
	OnlyOwnership  bool // nothing but finalizers, ownerReferences and managedFields
}

// FencedLeaseName names the FencedLease that the request is judged by: the one
// of the new object's label, else of the stored object's.
func (r Request) FencedLeaseName() string {
	if r.New.guarded() {
		return *r.New.GuardedBy
	}
	if r.Old.guarded() {
		return *r.Old.GuardedBy
	}
	return ""
}

func (o *Object) guarded() bool { return o != nil && o.GuardedBy != nil }

// sameGuard says that the stored object was guarded by the same FencedLease.
func (r Request) sameGuard() bool {
	return r.Old.guarded() && *r.Old.GuardedBy == r.FencedLeaseName()
}

// staysGuarded says that there will be a guarded object after the write.
func (r Request) staysGuarded() bool { return r.New.guarded() }

// writesMetadata says that the request can change labels and annotations.
func (r Request) writesMetadata() bool {
	return r.Operation != Delete && r.Subresource == ""
}

// mark is the stored token, if it was stored under the same FencedLease.
func (r Request) mark() Token {
	if !r.sameGuard() || r.Old.Token == nil {
		return None
	}
	return tokenOrNone(*r.Old.Token)
}

// stored is the token as the request would have it stored.
func (r Request) stored() Token {
	if r.New == nil || r.New.Token == nil {
		return None
	}
	return tokenOrNone(*r.New.Token)
}

// changesOurKeys says that the labels and annotations of the protocol differ.
func (r Request) changesOurKeys() bool {
	return r.Old != nil && r.New != nil &&
		(!equal(r.Old.GuardedBy, r.New.GuardedBy) || !equal(r.Old.Token, r.New.Token) ||
			!equal(r.Old.Write, r.New.Write) || !equal(r.Old.Bypass, r.New.Bypass))
}

// Claim is the token that a request presents; [None] for no claim. The stored
// token that a write inherits is none.
func (r Request) Claim(s State) Token {
	if len(r.TokenExtra) == 1 {
		return tokenOrNone(r.TokenExtra[0])
	}
	if r.presentsAfresh() {
		return r.stored()
	}
	proven := s.Current() != None && s.isTokenHolder(r.Writer) && s.provesToken(r.Writer.Kind()) &&
		(r.Operation == Delete || r.stored() == s.Current())
	if proven {
		return s.Current()
	}
	return None
}

// presentsAfresh says that the writer itself put the token on the new object.
func (r Request) presentsAfresh() bool {
	if !r.writesMetadata() || r.New.Token == nil {
		return false
	}
	if !r.sameGuard() || !equal(r.Old.Token, r.New.Token) {
		return true
	}
	return r.New.Write != nil && !equal(r.Old.Write, r.New.Write) &&
		strings.HasPrefix(*r.New.Write, *r.New.Token+"/")
}

// bypassReason is the reason of a break-glass write that the request freshly
// carries; "" if it carries none.
func (r Request) bypassReason() string {
	if !r.writesMetadata() {
		if len(r.BypassExtra) == 1 {
			return strings.TrimSpace(r.BypassExtra[0])
		}
		return ""
	}
	if r.New.Bypass == nil || r.Old != nil && equal(r.Old.Bypass, r.New.Bypass) {
		return ""
	}
	return strings.TrimSpace(*r.New.Bypass)
}

func equal(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
