package fence

import "strconv"

// Reason is the machine-readable reason of a refusal, as it stands in the
// Status that the client gets.
type Reason string

// The reasons of refusals, each with the HTTP codes that it comes with.
const (
	ReasonInvalid           Reason = "FencingTokenInvalid"     // 422
	ReasonRequired          Reason = "FencingTokenRequired"    // 428
	ReasonStale             Reason = "FencingTokenStale"       // 412
	ReasonNeverIssued       Reason = "FencingTokenNeverIssued" // 403
	ReasonRegressed         Reason = "FencingTokenRegressed"   // 422
	ReasonExhausted         Reason = "FencingTokenExhausted"   // 422
	ReasonNotFound          Reason = "FencedLeaseNotFound"     // 422
	ReasonLeaseConflict     Reason = "LeaseConflict"           // 422
	ReasonUnavailable       Reason = "FenceUnavailable"        // 503
	ReasonFencedLeaseExists Reason = "FencedLeaseExists"       // 422
)

// Known says whether the reason is one of ours: a Status may come from anyone.
func (r Reason) Known() bool {
	switch r {
	case ReasonInvalid, ReasonRequired, ReasonStale, ReasonNeverIssued, ReasonRegressed, ReasonExhausted,
		ReasonNotFound, ReasonLeaseConflict, ReasonUnavailable, ReasonFencedLeaseExists:
		return true
	}
	return false
}

// Refusal is why a request is refused, and what its sender can do about it.
type Refusal struct {
	Code              int32 // HTTP status
	Reason            Reason
	Message           string // says what to do
	RetryAfterSeconds int32  // with 503 only
	Facts             Facts
}

// Facts are the values behind a verdict. They reach the client as
// details.causes, so that it can act without parsing a message.
type Facts struct {
	Presented Token    // the claim; None if there was none
	Mark      Token    // the stored token of the object
	Current   Token    // the newest token minted
	Holder    string   // the holderIdentity to which current was minted
	Writer    Identity // the writer identity to which current was minted
}

// CauseType names a fact in details.causes of a refusal.
type CauseType string

// The causes; the message of each is the value itself.
const (
	CausePresented CauseType = "PresentedToken"
	CauseMark      CauseType = "MarkToken"
	CauseCurrent   CauseType = "CurrentToken"
	CauseHolder    CauseType = "Holder"
	CauseWriter    CauseType = "TokenHolder"
)

// Cause is one fact of a refusal.
type Cause struct {
	Type  CauseType
	Value string
}

// Causes lists the facts that are known.
func (f Facts) Causes() []Cause {
	var causes []Cause
	add := func(t CauseType, value string, known bool) {
		if known {
			causes = append(causes, Cause{t, value})
		}
	}
	add(CausePresented, f.Presented.String(), f.Presented != None)
	add(CauseMark, f.Mark.String(), f.Mark != None)
	add(CauseCurrent, f.Current.String(), f.Current != None)
	add(CauseHolder, f.Holder, f.Holder != "")
	add(CauseWriter, string(f.Writer), f.Writer != "")
	return causes
}

// FactsOf reads what [Facts.Causes] lists. Causes of other types are passed over,
// and a token that is not canonical counts as absent.
func FactsOf(causes []Cause) Facts {
	var f Facts
	for _, cause := range causes {
		switch cause.Type {
		case CausePresented:
			f.Presented = tokenOrNone(cause.Value)
		case CauseMark:
			f.Mark = tokenOrNone(cause.Value)
		case CauseCurrent:
			f.Current = tokenOrNone(cause.Value)
		case CauseHolder:
			f.Holder = cause.Value
		case CauseWriter:
			f.Writer = Identity(cause.Value)
		}
	}
	return f
}

// maxQuoted bounds how much of a client's value a message repeats.
const maxQuoted = 64

// quote makes a value that a client sent safe and short enough for a message.
func quote(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(s[:maxQuoted]) + "… (" + strconv.Itoa(len(s)) + " bytes)"
	}
	return strconv.Quote(s)
}
