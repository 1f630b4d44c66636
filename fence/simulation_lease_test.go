package fence_test

import (
	"strconv"

	"github.com/fencedlease/fencedlease/fence"
)

// applyOperator starts what the controller would do now.
func (s *simulation) applyOperator(action string) {
	write := fence.LeaseWrite{Old: s.lease, Writer: "pod/operator", ByOperator: true}
	if s.lease != nil {
		write.New = *s.lease
	}
	retired := write.New.IsRetired()
	switch {
	case action == "adopt" && s.fenced != nil && !write.New.Fenced():
		write.New.FencedBy = payments
	case action == "retire" && s.fenced == nil && write.New.Fenced():
		write.New.Retired = "true"
	case action == "unretire" && s.fenced != nil && retired:
		write.New.Retired = ""
	case action == "raise" && s.fenced != nil && write.New.Fenced():
		write.New.TokenFor = ""
	case action == "unretire and raise" && s.fenced != nil && retired:
		write.New.Retired, write.New.TokenFor = "", ""
	default:
		return
	}
	s.inFlight = append(s.inFlight, &leaseFlight{write: write})
}

// applyCandidate starts a write of the Lease by a candidate, or by a forger.
func (s *simulation) applyCandidate(st step, p *process) {
	now := strconv.Itoa(s.clock)
	f := &leaseFlight{by: p, write: fence.LeaseWrite{Old: s.lease, Writer: p.writer}}
	if s.lease != nil {
		f.write.New = *s.lease
	}
	lease := &f.write.New
	if st.Action == "forge" {
		f.by = nil // who leads elsewhere is not asked
		forgeKeys(&lease.Keys, st.N, s.current())
		s.inFlight = append(s.inFlight, f)
		return
	}
	if p.name == "" {
		return
	}
	acquire := func() {
		if lease.Holder != p.name || st.Action == "acquire again" {
			lease.Holder, lease.AcquireTime, lease.Transitions = p.name, now, now
		}
		lease.RenewTime = now
	}
	switch st.Action {
	case "acquire", "acquire again":
		acquire()
		if st.N > 4 {
			forgeKeys(&lease.Keys, st.N, s.current())
		}
	case "rebuild":
		lease.Keys = fence.Keys{}
		acquire()
	case "renew":
		if lease.Holder != p.name {
			return
		}
		lease.RenewTime = now
	case "release":
		if lease.Holder != p.name || p.token == fence.None || p.token != lease.CurrentToken() {
			return
		}
		lease.Holder, lease.AcquireTime, lease.RenewTime = "", now, now
	case "coordinate": // coordinated leader election chooses p
		f.by, f.write.Writer, f.write.ByAPIServer = nil, "user/system:apiserver", true
		acquire()
	case "acquire unseen":
		// The webhooks are away. They cannot tell afterwards that there was a
		// term without a token between two terms of the one whom token-for names.
		if s.lease == nil || lease.Holder == p.name || lease.TokenFor == p.name {
			return
		}
		acquire()
		s.lease, s.termHasOwn = lease, false
		return
	}
	s.inFlight = append(s.inFlight, f)
}

// forgeKeys writes something into our keys.
func forgeKeys(keys *fence.Keys, n int, current fence.Token) {
	switch n {
	case 0:
		keys.Token = (current + 9).String()
	case 1:
		keys.Token = "1"
	case 2:
		keys.Token = ""
	case 3:
		keys.TokenFor, keys.TokenHolder = "boris", "pod/nobody"
	case 4:
		keys.FencedBy = ""
	case 5:
		keys.Retired = "true"
	case 6:
		*keys = fence.Keys{FencedBy: payments, Token: (current + 1).String(), TokenFor: "anna", TokenHolder: "pod/nobody"}
	default:
		keys.Retired, keys.Token = "", "007"
	}
}

// leaseFlight is a put of the Lease. Mutating admission reads the FencedLease
// some time before the commit.
type leaseFlight struct {
	write fence.LeaseWrite
	by    *process // who reads its token from the response; nil for nobody

	admitted bool
	keys     fence.Keys
	floor    fence.Token // the largest that the FencedLease says was used
}

func (f *leaseFlight) advance(s *simulation) bool {
	if !f.admitted {
		keys, refusal := s.admitLease(&f.write)
		if refusal != nil {
			if refusal.Reason == fence.ReasonInvalid {
				s.t.Fatalf("the check refuses what the mint webhook made of %+v: %s", f.write, refusal.Message)
			}
			return false
		}
		f.admitted, f.keys = true, keys
		if s.fenced != nil {
			f.floor = max(s.fenced.status, s.fenced.minToken-1)
		}
		return true
	}
	if s.lease == f.write.Old {
		s.commitLease(f)
	}
	return false // committed, or a conflict
}

// commitLease stores the Lease, and checks the counter.
func (s *simulation) commitLease(f *leaseFlight) {
	before, after := fence.Lease{}, f.write.New
	if f.write.Old != nil {
		before = *f.write.Old
	}
	after.Keys = f.keys
	s.lease = &after
	if after.Holder != "" && (after.Holder != before.Holder || after.AcquireTime != before.AcquireTime || after.Transitions != before.Transitions) {
		s.termHasOwn = false
		s.counts["terms"]++
	}
	if !after.Fenced() {
		return
	}
	if !before.Fenced() {
		before.Keys = fence.Keys{} // anybody's
	}

	was, is := before.CurrentToken(), after.CurrentToken()
	if is != was {
		want := max(s.lastMinted, f.floor) + 1
		if is != want {
			s.t.Fatalf("token %s follows %s on the Lease; the newest was %s, the FencedLease said %s, so it must be %s",
				is, was, s.lastMinted, f.floor, want)
		}
		s.lastMinted, s.termHasOwn = is, true
		s.counts["mints"]++
	}
	p := f.by
	adopted := f.write.ByOperator && (!before.Fenced() || before.IsRetired() && f.write.New.TokenFor == before.TokenFor)
	if adopted || p != nil && after.RenewTime != before.RenewTime {
		s.checkHolder(&after)
	}
	if p != nil && after.TokenFor == p.name && !after.IsRetired() && is != fence.None {
		s.take(p, is)
	}
}

// checkHolder: who holds the Lease has a token, once it has renewed, or was
// adopted.
func (s *simulation) checkHolder(l *fence.Lease) {
	if l.Fenced() && !l.IsRetired() && l.Holder != "" && (l.TokenFor != l.Holder || l.CurrentToken() == fence.None) {
		s.t.Fatalf("the holder got no token: %+v", *l)
	}
}

// take is how a process reads its token from the response to its own write.
func (s *simulation) take(p *process, token fence.Token) {
	p.token = token
	if s.taken[p.writer] == nil {
		s.taken[p.writer] = map[fence.Token]bool{}
	}
	s.taken[p.writer][token] = true
	if p.writer.Kind() != fence.KindPod {
		return
	}
	if owner := s.owner[token]; owner != "" && owner != p.writer {
		s.t.Fatalf("two processes take token %s for their own: %s and %s", token, owner, p.writer)
	}
	s.owner[token] = p.writer
}
