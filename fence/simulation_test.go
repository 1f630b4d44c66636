package fence_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/fencedlease/fencedlease/fence"
)

// simulation is a world in which a random history happens: processes that lead,
// are paused and wake up, forgers, clients that inherit tokens, an operator that
// comes late to everything. Every write is in flight for a while between the
// moments when it reads what is stored, when it is judged, and when it is
// committed by compare-and-swap.
//
// Beside the world it keeps what really happened, by means of its own, so that
// the protocol is not compared with itself.
type simulation struct {
	world

	t         *rapid.T
	clock     int
	settings  fencedLease
	processes []*process
	inFlight  []flight
	copies    map[string]*object

	lastMinted fence.Token                             // the newest token that a Lease write committed
	termHasOwn bool                                    // a token was minted in the term that the Lease is in
	owner      map[fence.Token]fence.Identity          // the first Pod that took each token for its own
	taken      map[fence.Identity]map[fence.Token]bool // all that each writer took for its own
	committed  map[int]fence.Token                     // by uid, the largest token that committed a write
	counts     map[string]int                          // what happened how often
}

// process is somebody who competes for the Lease, or only writes.
type process struct {
	name   string // its holderIdentity; "" if it never competes
	writer fence.Identity
	token  fence.Token // what it takes for its own, be it stale
}

// flight is a write on its way.
type flight interface {
	// advance takes the next step; it returns false once the write is through.
	advance(s *simulation) bool
}

// step is one event of a history. Which of its fields count is up to the action.
type step struct {
	Action string
	Who    int
	Object string
	Claim  string // how a write presents its token
	N      int    // a choice, or how far a guess is off
	AtOnce bool   // the write is not kept in flight
	Bypass bool   // the write asks to break the glass, and may
}

var (
	objectActions   = []string{"create", "write", "seal", "status", "delete", "unguard", "guard", "finalize", "put", "put if unchanged"}
	claims          = []string{"none", "annotation", "nonce", "extra", "extra", "extra, meddled with", "token off"}
	leaseActions    = []string{"acquire", "acquire again", "renew", "renew", "release", "rebuild", "forge", "coordinate", "acquire unseen"}
	operatorActions = []string{"adopt", "retire", "unretire", "raise", "unretire and raise"}
	ownerActions    = []string{"mirror", "create FencedLease", "delete FencedLease", "raise minToken", "raise status", "lose Lease"}
	otherActions    = []string{"read", "advance", "advance", "advance", "watch Lease", "watch FencedLease"}
)

func steps() *rapid.Generator[step] {
	actions := make([]string, 0, 100)
	for _, group := range [][]string{
		objectActions, objectActions, objectActions, leaseActions, leaseActions, operatorActions, ownerActions, otherActions, otherActions,
	} {
		actions = append(actions, group...)
	}
	var (
		action = rapid.SampledFrom(actions)
		who    = rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7})
		name   = rapid.SampledFrom([]string{"invoice", "invoice", "receipt"})
		claim  = rapid.SampledFrom(claims)
		n      = rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7})
		atOnce = rapid.SampledFrom([]bool{true, true, false})
		bypass = rapid.SampledFrom(append(make([]bool, 15), true))
	)
	return rapid.Custom(func(t *rapid.T) step {
		st := step{Action: action.Draw(t, "action"), N: n.Draw(t, "n")}
		switch {
		case slices.Contains(objectActions, st.Action):
			st.Who, st.Object, st.Claim, st.AtOnce = who.Draw(t, "who"), name.Draw(t, "object"), claim.Draw(t, "claim"), atOnce.Draw(t, "at once")
			st.Bypass = bypass.Draw(t, "bypass")
		case slices.Contains(leaseActions, st.Action):
			st.Who, st.AtOnce = who.Draw(t, "who"), atOnce.Draw(t, "at once")
		case slices.Contains(operatorActions, st.Action):
			st.AtOnce = atOnce.Draw(t, "at once")
		case st.Action == "read":
			st.Object = name.Draw(t, "object")
		}
		return st
	})
}

func newProcesses() []*process {
	return []*process{
		{name: "anna", writer: "pod/anna"},
		{name: "boris", writer: "pod/boris"},
		{name: "anna", writer: "pod/anna-restarted"},
		{name: "clara", writer: "certificate/clara"},
		{name: "clara", writer: "certificate/clara-rotated"},
		{name: "dora", writer: "user/dora"},
		{writer: "user/nobody"},
		{writer: "pod/nobody"},
	}
}

func newSimulation(t *rapid.T, settings *fencedLease) *simulation {
	fl := *settings
	s := &simulation{
		t: t, settings: *settings, processes: newProcesses(),
		copies: map[string]*object{}, owner: map[fence.Token]fence.Identity{}, taken: map[fence.Identity]map[fence.Token]bool{},
		committed: map[int]fence.Token{}, counts: map[string]int{},
		world: world{
			objects: map[string]*object{}, fenced: &fl, lease: &fence.Lease{Keys: fence.Keys{FencedBy: payments}},
		},
	}
	s.catchUp()
	return s
}

// current is the newest token, from what really happened.
func (s *simulation) current() fence.Token {
	if s.fenced == nil {
		return s.lastMinted
	}
	return max(s.lastMinted, s.fenced.status)
}

// happen lets one step happen.
func (s *simulation) happen(st step) {
	s.clock++
	started := len(s.inFlight)
	s.apply(st)
	if st.AtOnce && len(s.inFlight) > started {
		s.land(len(s.inFlight) - 1)
	}
}

func (s *simulation) apply(st step) {
	p := s.processes[st.Who]
	switch {
	case slices.Contains(objectActions, st.Action):
		s.inFlight = append(s.inFlight, &objectFlight{step: st, by: p, token: s.claimed(st, p), copied: s.copies[st.Object]})
	case slices.Contains(leaseActions, st.Action):
		s.applyCandidate(st, p)
	case slices.Contains(operatorActions, st.Action):
		s.applyOperator(st.Action)
	case slices.Contains(ownerActions, st.Action):
		s.applyOwner(st)
	case st.Action == "read":
		s.copies[st.Object] = s.objects[st.Object]
	case st.Action == "watch Lease":
		s.watchedLease = s.lease
	case st.Action == "watch FencedLease":
		s.watchedFenced = s.fenced
	case len(s.inFlight) > 0: // advance
		i := st.N % len(s.inFlight)
		if !s.inFlight[i].advance(s) {
			s.inFlight = append(s.inFlight[:i:i], s.inFlight[i+1:]...)
		}
	}
}

// claimed is the token that a write presents: its writer's own, or one that it
// was told, or one that it made up.
func (s *simulation) claimed(st step, p *process) fence.Token {
	current := s.current()
	switch {
	case st.N == 7:
		return current + 1
	case p.token != fence.None:
		return p.token
	default:
		return max(1, current-fence.Token(st.N%2))
	}
}

// land takes all the steps that are left of a write.
func (s *simulation) land(i int) {
	for range 20 { // no write that is alone needs more
		if !s.inFlight[i].advance(s) {
			s.inFlight = append(s.inFlight[:i:i], s.inFlight[i+1:]...)
			return
		}
	}
	s.t.Fatalf("a write never ends: %+v", s.inFlight[i])
}

// applyOwner changes the FencedLease, or loses the Lease. The counter survives
// as long as one of its two copies does, so the last one is never lost here;
// what happens then is row G5.
func (s *simulation) applyOwner(st step) {
	leaseKnows := s.lease != nil && s.lease.Fenced() && s.lease.CurrentToken() == s.current()
	switch {
	case st.Action == "create FencedLease" && s.fenced == nil:
		fl := s.settings
		s.fenced = &fl
	case s.fenced == nil: // there is nothing to change
	case st.Action == "delete FencedLease" && leaseKnows && st.N < 3:
		s.fenced = nil
	case st.Action == "lose Lease" && s.fenced.status == s.current():
		s.lease, s.termHasOwn = nil, false
	case st.Action == "mirror" && s.live().Lease == fence.LeaseOurs:
		s.setFenced(func(fl *fencedLease) { fl.status = max(fl.status, s.lease.CurrentToken()) })
	case st.Action == "raise minToken":
		s.setFenced(func(fl *fencedLease) { fl.minToken = max(fl.minToken, s.current()+fence.Token(st.N)-2) })
	case st.Action == "raise status":
		s.setFenced(func(fl *fencedLease) { fl.status = max(fl.status, s.current()+fence.Token(st.N)-5) })
	}
}

func (s *simulation) setFenced(change func(*fencedLease)) {
	fl := *s.fenced
	change(&fl)
	s.fenced = &fl
}

// checkInvariants are what holds at any moment.
func (s *simulation) checkInvariants() {
	if l := s.lease; l != nil && l.Fenced() && !l.IsRetired() && l.Holder != "" && l.TokenFor == l.Holder && !s.termHasOwn {
		s.t.Fatalf("the holder takes token %s of an older term for its own: %+v", l.Token, *l)
	}
	for name, o := range s.objects {
		if o.GuardedBy == nil {
			continue
		}
		mark, current := tokenOf(o), s.current()
		if mark > current {
			s.t.Fatalf("%s is locked: its mark is %s, and no token above %s exists", name, mark, current)
		}
		if state := s.live(); !state.Exists || state.Lease == fence.LeaseRetired || current == fence.None || s.settings.strictlyNewer && mark == current {
			continue
		}
		after := *o
		after.data += "x"
		w := objectWrite{operation: fence.Update, old: o, new: &after, writer: "user/somebody", tokenExtra: []string{current.String()}}
		w.stamp()
		request := w.request()
		if verdict := fence.Judge(request, s.live()); !verdict.Allowed() {
			s.t.Fatalf("a good leader is refused on %s: %s: %s", name, verdict.Row, verdict.Refusal.Message)
		}
	}
}
