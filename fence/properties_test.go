package fence_test

import (
	"flag"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencedlease/fencedlease/fence"
)

// TestHistories checks, in random histories, what the protocol promises under
// enforcement Deny:
//
//   - The token grows by one with each term, or to what minToken or the status
//     demand; it never repeats and never falls, whatever is deleted and made
//     again while one copy of the counter is left. Nobody takes a token for its
//     own that was minted in another term, and no two Pods take the same.
//   - S1: the mark of an object never falls.
//   - S2: once a term has committed anything on an object, no smaller token does.
//   - S3: what is smaller than current when it is judged is refused; under Cached,
//     what is smaller than the watch knows.
//   - StrictlyNewer: one write per object and term.
//   - Nobody can lock out the holder of the current token.
func TestHistories(t *testing.T) {
	cases := map[string]fencedLease{
		"NotOlder, Linearizable":                    {},
		"NotOlder, Cached":                          {cached: true},
		"StrictlyNewer, Linearizable":               {strictlyNewer: true},
		"StrictlyNewer, Cached":                     {strictlyNewer: true, cached: true},
		"NotOlder, Linearizable, with certificates": {identities: []fence.IdentityKind{fence.KindPod, fence.KindCertificate}},
		"NotOlder, Cached, with certificates":       {cached: true, identities: []fence.IdentityKind{fence.KindPod, fence.KindCertificate}},
	}
	atLeast(t, "150", "150")
	for name, settings := range cases {
		t.Run(name, func(t *testing.T) {
			settings.minToken = 1
			if settings.identities == nil {
				settings.identities = []fence.IdentityKind{fence.KindPod}
			}
			counts := map[string]int{}
			rapid.Check(t, func(t *rapid.T) {
				s, events := newSimulation(t, &settings), steps()
				t.Repeat(map[string]func(*rapid.T){
					"event": func(t *rapid.T) { s.happen(events.Draw(t, "event")) },
					"":      func(*rapid.T) { s.checkInvariants() },
				})
				for what, n := range s.counts {
					counts[what] += n
				}
			})
			t.Logf("what happened: %v", counts)
		})
	}
}

// TestCheckLeaseAcceptsExactlyTheMint checks that M8 accepts what the mint
// webhook makes of any write, also if it is invoked again on its own result, and
// refuses it as soon as one of our keys is another.
func TestCheckLeaseAcceptsExactlyTheMint(t *testing.T) {
	atLeast(t, "10000", "1")
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		write := leaseWrites().Draw(t, "write")
		fl := fencedLeases().Draw(t, "FencedLease")
		plan := fence.PlanLease(write)
		keys, refusal := keysAfter(plan, fl)
		if refusal != nil {
			counts["refused"]++
			return
		}
		stored := fence.Keys{}
		if write.Old != nil {
			stored = write.Old.Keys
		}
		write.New.Keys = keys
		if refusal := fence.CheckLease(write); refusal != nil {
			t.Fatalf("refused as it is: %s", refusal.Message)
		}
		again, refusal := keysAfter(fence.PlanLease(write), fl)
		if refusal != nil || again != keys {
			t.Fatalf("invoked again it makes %+v of %+v (%v)", again, keys, refusal)
		}

		changed, field := keys, rapid.SampledFrom([]string{"fenced-by", "retired", "token", "token-for", "token-holder", "all of them"}).Draw(t, "field")
		switch field {
		case "fenced-by":
			changed.FencedBy = rapid.SampledFrom(fencedLeaseNames).Draw(t, "value")
		case "retired":
			changed.Retired = rapid.SampledFrom(retiredValues).Draw(t, "value")
		case "token":
			changed.Token = rapid.SampledFrom(tokenValues).Draw(t, "value")
		case "token-for":
			changed.TokenFor = rapid.SampledFrom(holderNames).Draw(t, "value")
		case "token-holder":
			changed.TokenHolder = rapid.SampledFrom(writerNames).Draw(t, "value")
		case "all of them": // the mint webhook was not called
			changed = stored
		}
		switch {
		case changed == keys:
			return
		case write.ByOperator && (field == "fenced-by" || field == "retired" || field == "all of them"):
			return // the operator may
		case write.ByOperator && field == "token-for" && (changed.TokenFor == "" || changed.TokenFor == stored.TokenFor):
			return // it may clear it, or not
		case field == "token" && plan.Mints && changed.CurrentToken() > plan.Keys.CurrentToken():
			return // what minToken and the status are M8 does not read
		case changed == plan.Keys && plan.Keys.IsRetired():
			return // nor whether the FencedLease exists again
		}
		counts["refused after a change of "+field]++
		write.New.Keys = changed
		if fence.CheckLease(write) == nil {
			t.Fatalf("accepted though %s was changed: %+v to %+v", field, keys, changed)
		}
	})
	t.Logf("what happened: %v", counts)
}

func keysAfter(plan fence.Plan, fl fence.FencedLease) (fence.Keys, *fence.Refusal) {
	if !plan.Mints {
		return plan.Keys, nil
	}
	return plan.Mint(fl)
}

var (
	fencedLeaseNames = []string{"", payments, "invoices"}
	retiredValues    = []string{"", "true", "false"}
	tokenValues      = []string{"", "1", "5", "6", "7", "06", "9007199254740991"}
	holderNames      = []string{"", "anna", "boris"}
	writerNames      = []string{"", "pod/anna", "pod/boris", "certificate/anna", "user/anna"}
)

// leaseWrites are writes of Leases by anybody, from any state to any other.
func leaseWrites() *rapid.Generator[fence.LeaseWrite] {
	leases := rapid.Custom(func(t *rapid.T) fence.Lease {
		return fence.Lease{
			Keys: fence.Keys{
				FencedBy:    rapid.SampledFrom([]string{payments, "", "invoices"}).Draw(t, "fenced-by"),
				Retired:     rapid.SampledFrom(retiredValues).Draw(t, "retired"),
				Token:       rapid.SampledFrom(tokenValues).Draw(t, "token"),
				TokenFor:    rapid.SampledFrom(holderNames).Draw(t, "token-for"),
				TokenHolder: rapid.SampledFrom(writerNames).Draw(t, "token-holder"),
			},
			Holder:      rapid.SampledFrom(holderNames).Draw(t, "holder"),
			AcquireTime: rapid.SampledFrom([]string{"10:00", "11:00"}).Draw(t, "acquireTime"),
			RenewTime:   rapid.SampledFrom([]string{"10:00", "11:00"}).Draw(t, "renewTime"),
			Transitions: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "transitions"),
		}
	})
	return rapid.Custom(func(t *rapid.T) fence.LeaseWrite {
		w := fence.LeaseWrite{
			New:    leases.Draw(t, "new"),
			Writer: fence.Identity(rapid.SampledFrom(writerNames).Draw(t, "writer")),
		}
		if rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "an update") {
			old := leases.Draw(t, "old")
			w.Old = &old
			if rapid.Bool().Draw(t, "renews at most") {
				w.New.Holder, w.New.AcquireTime, w.New.Transitions = old.Holder, old.AcquireTime, old.Transitions
			}
		}
		switch rapid.SampledFrom([]string{"a candidate", "the operator", "the API server"}).Draw(t, "by") {
		case "the operator":
			w.ByOperator = true
		case "the API server":
			w.ByAPIServer = true
		}
		return w
	})
}

func fencedLeases() *rapid.Generator[fence.FencedLease] {
	return rapid.Custom(func(t *rapid.T) fence.FencedLease {
		if rapid.SampledFrom([]bool{false, false, true}).Draw(t, "is gone") {
			return fence.FencedLease{}
		}
		return fence.FencedLease{
			Exists:      true,
			StatusToken: rapid.SampledFrom([]fence.Token{6, 0, 9, fence.MaxToken}).Draw(t, "status"),
			MinToken:    rapid.SampledFrom([]fence.Token{1, 0, 50}).Draw(t, "minToken"),
		}
	})
}

// atLeast sets how many random cases rapid tries, and of how many steps, unless
// the command line does.
func atLeast(t *testing.T, checks, steps string) {
	t.Helper()
	given := givenFlags()
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.steps": steps} {
		if given[name] {
			continue
		}
		before := flag.Lookup(name).Value.String()
		t.Cleanup(func() { _ = flag.Set(name, before) })
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

// givenFlags are those of the command line. It is asked before any is set here.
var givenFlags = sync.OnceValue(func() map[string]bool {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
})
