package fence

import "slices"

// LeaseState is how the Lease of a FencedLease stands to it.
type LeaseState string

const (
	// LeaseOurs says that its fenced-by names the FencedLease, and it is not retired.
	LeaseOurs LeaseState = "Ours"

	// LeaseUnfenced says that it does not exist, or has no fenced-by: not adopted yet.
	LeaseUnfenced LeaseState = "Unfenced"

	// LeaseRetired says that it waits for its FencedLease to adopt it again.
	LeaseRetired LeaseState = "Retired"

	// LeaseTaken says that its fenced-by names another FencedLease.
	LeaseTaken LeaseState = "Taken"
)

// LeaseStateOf says how a Lease with these keys stands to the FencedLease of
// that name. Keys of a Lease that does not exist are empty.
func LeaseStateOf(k Keys, fencedLease string) LeaseState {
	switch {
	case !k.Fenced():
		return LeaseUnfenced
	case k.IsRetired():
		return LeaseRetired
	case k.FencedBy != fencedLease:
		return LeaseTaken
	default:
		return LeaseOurs
	}
}

// State is what a request is judged against: a FencedLease and its Lease.
type State struct {
	// Unreadable says why the rest could not be read in time; "" if it could.
	Unreadable string

	Exists        bool           // the FencedLease exists
	Lease         LeaseState     // how its Lease stands to it
	LeaseKeys     Keys           // our keys on the Lease
	StatusToken   Token          // status.token of the FencedLease
	Identities    []IdentityKind // spec.identities
	StrictlyNewer bool           // spec.tokenOrder
	Cached        bool           // spec.verification
	Warn          bool           // spec.enforcement
}

// Current is the newest token minted: the larger of status.token and the token
// of the Lease, if the Lease is the FencedLease's own.
func (s State) Current() Token {
	if s.Lease != LeaseOurs {
		return s.StatusToken
	}
	return max(s.StatusToken, s.LeaseKeys.CurrentToken())
}

// tokenHolder is the writer identity to which current was minted; "" if that is
// not known.
func (s State) tokenHolder() Identity {
	if s.Lease != LeaseOurs || s.LeaseKeys.CurrentToken() != s.Current() {
		return ""
	}
	return Identity(s.LeaseKeys.TokenHolder)
}

func (s State) isTokenHolder(writer Identity) bool {
	return writer != "" && writer == s.tokenHolder()
}

func (s State) provesToken(kind IdentityKind) bool {
	return kind != KindUser && slices.Contains(s.Identities, kind)
}

// facts are the values behind a verdict on a request that presents that claim.
func (s State) facts(r Request, claim Token) Facts {
	f := Facts{Presented: claim, Mark: r.mark(), Current: s.Current(), Writer: s.tokenHolder()}
	if s.Lease == LeaseOurs {
		f.Holder = s.LeaseKeys.TokenFor
	}
	return f
}
