package fence

// Keys are our labels and annotations on a Lease, as stored; "" is absent.
type Keys struct {
	FencedBy    string // label fenced-by: the name of the FencedLease
	Retired     string // label retired
	Token       string // annotation token
	TokenFor    string // annotation token-for: a holderIdentity
	TokenHolder string // annotation token-holder: a writer identity
}

// Fenced says whether a FencedLease wraps, or wrapped, the Lease.
func (k Keys) Fenced() bool { return k.FencedBy != "" }

// IsRetired says whether the FencedLease that wrapped the Lease is gone.
func (k Keys) IsRetired() bool { return k.Retired == retired }

// CurrentToken is the stored token; one that is not canonical counts as absent.
func (k Keys) CurrentToken() Token { return tokenOrNone(k.Token) }

const retired = "true"

// Lease is what the protocol reads of a Lease. Times are opaque: they are
// compared for equality only, since no clock is trusted.
type Lease struct {
	Keys

	Holder      string // spec.holderIdentity
	AcquireTime string // spec.acquireTime
	RenewTime   string // spec.renewTime
	Transitions string // spec.leaseTransitions
}

// LeaseWrite is a create or an update of a Lease.
type LeaseWrite struct {
	Old    *Lease // the stored Lease; nil for a create
	New    Lease  // the Lease as the request would have it stored
	Writer Identity

	ByOperator  bool // by the operator's own service account
	ByAPIServer bool // by the API server itself (coordinated leader election)
}

// FencedLease is what the protocol reads of a FencedLease in order to mint.
type FencedLease struct {
	Exists      bool  // it exists, and its leaseName is this Lease
	StatusToken Token // status.token
	MinToken    Token // spec.minToken
}

// Plan is what our keys on a Lease must be after a write.
type Plan struct {
	// Mints says that the write gets a new token if the FencedLease exists, so
	// that the FencedLease must be read, live. Use [Plan.Mint] then, else Keys.
	Mints bool

	// Keys are our keys after a write that mints nothing.
	Keys Keys

	old    Token // the token that a new one must exceed
	holder string
	writer string // the token-holder that goes with a new token
}

// PlanLease works out our keys after a write (rules M1, M3, M4 and M10). Where
// nothing is minted they come from the stored Lease, whatever the writer sent:
// a client that rebuilds the Lease, or a forger, changes nothing. Only the
// operator puts our labels on and takes them off, and clears token-for.
func PlanLease(w LeaseWrite) Plan {
	stored := Lease{}
	if w.Old != nil {
		stored = *w.Old
	}
	keys := stored.Keys
	if w.ByOperator {
		keys.FencedBy, keys.Retired = w.New.FencedBy, w.New.Retired
		if w.New.TokenFor == "" {
			keys.TokenFor = ""
		}
	}
	labelled := keys.Fenced() && !stored.Fenced()
	if labelled { // anyone may have written them there beforehand
		keys.Token, keys.TokenFor, keys.TokenHolder = "", "", ""
	}

	plan := Plan{Keys: keys, old: keys.CurrentToken(), holder: w.New.Holder}
	if !w.ByOperator && !w.ByAPIServer {
		plan.writer = string(w.Writer)
	}
	if !keys.Fenced() || w.New.Holder == "" {
		return plan
	}

	acquired := w.Old == nil || w.New.Holder != stored.Holder ||
		w.New.AcquireTime != stored.AcquireTime || w.New.Transitions != stored.Transitions
	if keys.IsRetired() {
		plan.Mints = acquired
		if acquired { // a change of hands must not be mistaken for the same term
			plan.Keys.TokenFor = ""
		}
		return plan
	}

	renewed := w.Old == nil || w.New.RenewTime != stored.RenewTime
	unretired := stored.IsRetired()
	// The stored token-for: where the operator clears it, even in the write that
	// takes retired off, the token rises in the holder's own renewal (M4).
	hasToken := plan.old != None && stored.TokenFor == w.New.Holder
	otherPod := plan.writer != "" && w.Writer.Kind() == KindPod &&
		keys.TokenHolder != "" && keys.TokenHolder != plan.writer

	plan.Mints = acquired ||
		(renewed || labelled || unretired) && !hasToken ||
		renewed && otherPod
	if !plan.Mints && renewed && plan.writer != "" && !heldByPod(keys) {
		plan.Keys.TokenHolder = plan.writer // a rotated certificate is not a new term
	}
	return plan
}

// heldByPod says that the token was minted to a Pod, which only a mint replaces.
func heldByPod(k Keys) bool { return Identity(k.TokenHolder).Kind() == KindPod }

// Mint works out our keys after a write that mints (rules M2, M3 and M10), with
// the FencedLease as it was read, live. It refuses where no token may be given:
// a token is never guessed.
func (p Plan) Mint(f FencedLease) (Keys, *Refusal) {
	if !f.Exists {
		if p.Keys.IsRetired() {
			return p.Keys, nil
		}
		return Keys{}, &Refusal{
			Code: 503, Reason: ReasonUnavailable, RetryAfterSeconds: 1,
			Message: "no token can be minted: FencedLease " + quote(p.Keys.FencedBy) + " does not exist, or does not wrap this Lease, " +
				"and the operator has not retired the Lease yet; try again",
		}
	}
	last := max(p.old, f.StatusToken, f.MinToken-1)
	if last >= MaxToken {
		return Keys{}, &Refusal{
			Code: 422, Reason: ReasonExhausted,
			Message: "no token is left: the last was " + last.String() + ", the largest there is; " +
				"move to a new FencedLease and a new Lease under another name",
			Facts: Facts{Current: last},
		}
	}
	keys := p.Keys
	keys.Retired = ""
	keys.Token, keys.TokenFor, keys.TokenHolder = (last + 1).String(), p.holder, p.writer
	return keys, nil
}

// CheckLease applies the rules to the Lease as it would be stored, without
// reading the FencedLease (rule M8). It returns nil if our keys are in order.
func CheckLease(w LeaseWrite) *Refusal {
	p, got := PlanLease(w), w.New.Keys
	if p.Mints {
		minted := p.Keys
		minted.Retired = ""
		minted.Token, minted.TokenFor, minted.TokenHolder = got.Token, p.holder, p.writer
		if got == minted && got.CurrentToken() > p.old {
			return nil
		}
	}
	if got == p.Keys && (!p.Mints || p.Keys.IsRetired()) {
		return nil
	}
	message := "the labels and annotations of fencedlease.io on this Lease were changed after the mint webhook set them; " +
		"look for another mutating webhook on leases"
	if p.Mints {
		message = "this write acquires a fenced Lease, and the new token that the mint webhook gave it is missing; " +
			"look for another mutating webhook on leases"
	}
	return &Refusal{
		Code: 422, Reason: ReasonInvalid, Message: message,
		Facts: Facts{Current: p.old, Holder: p.Keys.TokenFor},
	}
}

// NeverFenced says why a Lease is never wrapped (rule M9); "" if it may be.
func NeverFenced(namespace, name, operatorNamespace string, allowControlPlane bool) string {
	switch {
	case namespace == operatorNamespace:
		return "Leases of the operator's own namespace are never fenced: they would wait for a webhook that waits for them"
	case namespace == "kube-node-lease":
		return "Leases of kube-node-lease are the heartbeats of nodes and are never fenced"
	case namespace == "kube-system" && (name == "kube-controller-manager" || name == "kube-scheduler") && !allowControlPlane:
		return "the Lease of " + name + " is fenced only with spec.allowControlPlane: set it where the webhook has an address that does not depend on it"
	}
	return ""
}

// CannotRead refuses a write or a delete of a Lease whose FencedLease could not be read.
func CannotRead(fencedLease, why string) *Refusal {
	return &Refusal{
		Code: 503, Reason: ReasonUnavailable, RetryAfterSeconds: 1,
		Message: "FencedLease " + quote(fencedLease) + " cannot be read (" + why + "): a token is never guessed, and a counter never given up; try again",
	}
}

// KeepLease refuses to delete a Lease whose FencedLease exists (rule M7).
func KeepLease(k Keys) *Refusal {
	return &Refusal{
		Code: 422, Reason: ReasonFencedLeaseExists,
		Message: "the Lease carries the counter of FencedLease " + quote(k.FencedBy) + ": delete the FencedLease first, or release the Lease instead",
		Facts:   Facts{Current: k.CurrentToken(), Holder: k.TokenFor, Writer: Identity(k.TokenHolder)},
	}
}
