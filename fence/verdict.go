package fence

// Row names the row of the verdict table that decided.
type Row string

// The rows, in the order in which they are tried (docs/protocol.md).
const (
	RowExempt     Row = "Exempt"     // the garbage collector and the namespace controller
	RowUnchanged  Row = "Unchanged"  // equal byte for byte to the stored object
	RowStatusKeys Row = "StatusKeys" // a /status write that changes one of our keys
	RowInvalid    Row = "G1"
	RowNotFound   Row = "G2"
	RowMoved      Row = "G3"
	RowUnreadable Row = "G4"
	RowRegressed  Row = "G5"
	RowNoTermYet  Row = "G6"
	RowUnclaimed  Row = "G7"
	RowFuture     Row = "G8"
	RowStale      Row = "G9"
	RowNotNewer   Row = "G10"
	RowMismatch   Row = "G11"
	RowAllowed    Row = "G12"
)

// Verdict is the answer to a request.
type Verdict struct {
	Row     Row      // the row that decided
	Refusal *Refusal // nil if the request is allowed
	Warning string   // for the client of a request that is allowed; "" for none
	Facts   Facts

	// Warned says that only enforcement Warn admitted the request; Refused is
	// what it would have been refused with.
	Warned  bool
	Refused *Refusal

	// BypassReason is not empty if the request is refused, asks to break the
	// glass, and its row lets it: see BreakGlass.
	BypassReason string
}

// Allowed says whether the request is admitted.
func (v Verdict) Allowed() bool { return v.Refusal == nil }

// judgement is one request on its way through the rows.
type judgement struct {
	Request

	state State
	claim Token
}

// outcome is what a row says if it applies.
type outcome struct {
	refusal *Refusal
	warning string
}

var (
	allow = &outcome{}
	// pass is the outcome of a row that does not apply.
	pass *outcome
)

// rule is one row: nil, if it does not apply.
type rule struct {
	row   Row
	apply func(judgement) *outcome
}

// beforeReading are the rows that need no value but the request's own. G3
// stands before G2, which has to read: both refuse, and a move between two
// FencedLeases is never right, whichever of them exists.
var beforeReading = []rule{
	{RowExempt, exempt},
	{RowUnchanged, unchanged},
	{RowStatusKeys, statusKeys},
	{RowInvalid, invalid},
	{RowMoved, moved},
}

// afterReading are the rows that compare the request with the state.
var afterReading = []rule{
	{RowNotFound, notFound},
	{RowUnreadable, unreadable},
	{RowRegressed, regressed},
	{RowNoTermYet, noTermYet},
	{RowUnclaimed, unclaimed},
	{RowFuture, future},
	{RowStale, stale},
	{RowNotNewer, notNewer},
	{RowMismatch, mismatch},
}

// JudgeAlone tries the rows that need no value but the request's own. It returns
// false if none of them applies, and the state has to be read.
func JudgeAlone(r Request) (Verdict, bool) {
	return try(beforeReading, judgement{Request: r, claim: r.Claim(State{})})
}

// Judge tries all rows in order; the first that applies is the answer.
func Judge(r Request, s State) Verdict {
	j := judgement{Request: r, state: s, claim: r.Claim(s)}
	if v, ok := try(beforeReading, j); ok {
		return v
	}
	v, ok := try(afterReading, j)
	if !ok {
		v = Verdict{Row: RowAllowed, Facts: s.facts(r, j.claim)}
	}
	if v.Allowed() {
		return v
	}
	if s.Warn && warnable(v.Row) {
		v.Warned, v.Refused, v.Refusal = true, v.Refusal, nil
		v.Warning = "admitted only because enforcement is Warn; Deny would refuse it with " +
			string(v.Refused.Reason) + ": " + v.Refused.Message
		return v
	}
	if bypassable(v.Row) {
		v.BypassReason = r.bypassReason()
	}
	return v
}

func try(rules []rule, j judgement) (Verdict, bool) {
	for _, rule := range rules {
		o := rule.apply(j)
		if o == pass {
			continue
		}
		v := Verdict{Row: rule.row, Refusal: o.refusal, Warning: o.warning, Facts: j.state.facts(j.Request, j.claim)}
		if v.Refusal != nil {
			v.Refusal.Facts = v.Facts
		}
		return v, true
	}
	return Verdict{}, false
}

// warnable are the rows whose refusals enforcement Warn turns into warnings.
func warnable(row Row) bool {
	return row == RowUnclaimed || row == RowStale || row == RowNotNewer
}

// bypassable are the rows whose refusals a break-glass write overrides.
func bypassable(row Row) bool {
	return warnable(row) || row == RowNotFound || row == RowRegressed
}

// Final says whether a verdict on a cached state may be given as it is. Tokens
// only grow, so a claim below a cached current is stale for good; and under
// Cached, a claim may be accepted on cached values. Everything else is judged
// again on a live state.
func Final(v Verdict, cached State) bool {
	if v.Allowed() {
		return cached.Cached && v.Row == RowAllowed && v.Facts.Presented != None && cached.Lease == LeaseOurs
	}
	return v.Row == RowStale && v.Facts.Presented < cached.Current() && v.BypassReason == ""
}

// BreakGlass admits a refused request whose user may bypass the FencedLease,
// unless it would change the mark, which stays exactly as it was.
func BreakGlass(v Verdict, r Request) Verdict {
	if v.Allowed() || v.BypassReason == "" {
		return v
	}
	if r.writesMetadata() && r.staysGuarded() && !r.keepsMark() {
		refusal := tokenMustBe(r.mark(), "a break-glass write leaves the mark exactly as it was")
		refusal.Facts = v.Facts
		return Verdict{Row: RowMismatch, Refusal: refusal, Facts: v.Facts}
	}
	return Verdict{
		Row: v.Row, Facts: v.Facts, Refused: v.Refusal, BypassReason: v.BypassReason,
		Warning: "admitted by break-glass, which is recorded; without it: " + string(v.Refusal.Reason) + ": " + v.Refusal.Message,
	}
}

// keepsMark says that the stored token would be exactly the mark.
func (r Request) keepsMark() bool { return r.stored() == r.mark() }
