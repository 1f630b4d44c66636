package fence_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
)

// leaseCase is a write of a Lease and our keys after it.
type leaseCase struct {
	old         *leaseBuilder // nil for a create
	new         *leaseBuilder
	writer      fence.Identity
	byOperator  bool
	byAPIServer bool

	wantMint bool
	want     fence.Keys
}

func (tc *leaseCase) write() fence.LeaseWrite {
	w := fence.LeaseWrite{New: *tc.new.Obj(), Writer: tc.writer, ByOperator: tc.byOperator, ByAPIServer: tc.byAPIServer}
	if tc.old != nil {
		w.Old = tc.old.Obj()
	}
	return w
}

// existing is the FencedLease that wraps the Lease of the tables.
var existing = fence.FencedLease{Exists: true, StatusToken: 6, MinToken: 1}

// testLeaseWrites plans each write, mints where the plan says so, and lets M8
// check what came out.
func testLeaseWrites(t *testing.T, cases map[string]leaseCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			write := tc.write()
			plan := fence.PlanLease(write)
			if plan.Mints != tc.wantMint {
				t.Errorf("mints: want %t, got %t", tc.wantMint, plan.Mints)
			}
			keys := plan.Keys
			if plan.Mints {
				var refusal *fence.Refusal
				if keys, refusal = plan.Mint(existing); refusal != nil {
					t.Fatalf("refused: %s", refusal.Message)
				}
			}
			if diff := cmp.Diff(tc.want, keys); diff != "" {
				t.Errorf("keys (-want,+got):\n%s", diff)
			}
			write.New.Keys = keys
			if refusal := fence.CheckLease(write); refusal != nil {
				t.Errorf("its own check refuses it: %s", refusal.Message)
			}
		})
	}
}

// keysOf are our keys where "payments" wraps the Lease.
func keysOf(token, holder string, writer fence.Identity) fence.Keys {
	return fence.Keys{FencedBy: payments, Token: token, TokenFor: holder, TokenHolder: string(writer)}
}

// retiredKeysOf are the keys of anna's Lease, retired.
func retiredKeysOf(holder string) fence.Keys {
	keys := keysOf("6", holder, anna)
	keys.Retired = "true"
	return keys
}

// takenOver is anna's Lease after boris took it.
func takenOver() *leaseBuilder {
	return makeHeldLease().Holder("boris").AcquiredAt("11:00").RenewedAt("11:00").Transitions("2")
}

func renewed() *leaseBuilder { return makeHeldLease().RenewedAt("10:06") }

// M1 (a): an acquisition mints.
func TestM1a(t *testing.T) {
	testLeaseWrites(t, map[string]leaseCase{
		"the first term": {
			old:    makeLease(),
			new:    makeLease().Holder("anna").AcquiredAt("10:00").RenewedAt("10:00"),
			writer: anna, wantMint: true, want: keysOf("7", "anna", anna),
		},
		"another takes over": {
			old: makeHeldLease(), new: takenOver(),
			writer: boris, wantMint: true, want: keysOf("7", "boris", boris),
		},
		"only the holder changes": {
			old: makeHeldLease(), new: makeHeldLease().Holder("boris"),
			writer: boris, wantMint: true, want: keysOf("7", "boris", boris),
		},
		"the same holder acquires again": {
			old: makeHeldLease(), new: makeHeldLease().AcquiredAt("11:00"),
			writer: anna, wantMint: true, want: keysOf("7", "anna", anna),
		},
		"only the transitions change": {
			old: makeHeldLease(), new: makeHeldLease().Transitions("2"),
			writer: anna, wantMint: true, want: keysOf("7", "anna", anna),
		},
		"after a release": {
			old: makeHeldLease().Holder(""), new: makeHeldLease(),
			writer: anna, wantMint: true, want: keysOf("7", "anna", anna),
		},
		"a write of the same holder that acquires nothing": {
			old: makeHeldLease(), new: makeHeldLease(),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"a Lease that nobody holds": {
			old: makeLease(), new: makeLease().Transitions("1").AcquiredAt("10:00"),
			writer: anna, want: fence.Keys{FencedBy: payments},
		},
		"a Lease that nobody fenced": {
			old: makeLease().FencedBy(""), new: makeLease().FencedBy("").Holder("anna").AcquiredAt("10:00"),
			writer: anna, want: fence.Keys{},
		},
	})
}

// M1 (b): a mint that was missed is made up at the next renewal.
func TestM1b(t *testing.T) {
	testLeaseWrites(t, map[string]leaseCase{
		"a renewal without a token": {
			old: makeHeldLease().Minted("", "", ""), new: renewed().Minted("", "", ""),
			writer: anna, wantMint: true, want: keysOf("7", "anna", anna),
		},
		"a renewal under a token of another": {
			old: takenOver(), new: takenOver().RenewedAt("11:01"),
			writer: boris, wantMint: true, want: keysOf("7", "boris", boris),
		},
		"a renewal under a token that is not canonical": {
			old: makeHeldLease().Minted("06", "anna", anna), new: renewed(),
			writer: anna, wantMint: true, want: keysOf("7", "anna", anna),
		},
		"any other write waits for the renewal": {
			old: takenOver(), new: takenOver(),
			writer: boris, want: keysOf("6", "anna", anna),
		},
		"the renewal of a holder that has its token": {
			old: makeHeldLease(), new: renewed(),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"the operator adopts a Lease that is held": {
			old: makeHeldLease().FencedBy("").Minted("", "", ""), new: makeHeldLease().Minted("", "", ""),
			byOperator: true, wantMint: true, want: keysOf("7", "anna", ""),
		},
		"what stood on it beforehand counts for nothing": {
			old: makeHeldLease().FencedBy("").Minted("900", "anna", boris), new: makeHeldLease().Minted("900", "anna", boris),
			byOperator: true, wantMint: true, want: keysOf("7", "anna", ""),
		},
		"the operator adopts a Lease that nobody holds": {
			old: makeLease().FencedBy("").Minted("900", "anna", boris), new: makeLease().Minted("900", "anna", boris),
			byOperator: true, want: fence.Keys{FencedBy: payments},
		},
		"retired comes off, and the hands have changed": {
			old: makeHeldLease().Retired().Minted("6", "", anna), new: makeHeldLease().Minted("6", "", anna),
			byOperator: true, wantMint: true, want: keysOf("7", "anna", ""),
		},
		"retired comes off in the same term": {
			old: makeHeldLease().Retired(), new: makeHeldLease(),
			byOperator: true, want: keysOf("6", "anna", anna),
		},
	})
}

// M1 (c): a new process under an old name is a new term.
func TestM1c(t *testing.T) {
	const successor = fence.Identity("pod/anna-restarted")
	testLeaseWrites(t, map[string]leaseCase{
		"another Pod renews under the same name": {
			old: makeHeldLease(), new: renewed(),
			writer: successor, wantMint: true, want: keysOf("7", "anna", successor),
		},
		"another Pod that renews nothing": {
			old: makeHeldLease(), new: makeHeldLease(),
			writer: successor, want: keysOf("6", "anna", anna),
		},
		"a Pod after a certificate": {
			old: makeHeldLease().Minted("6", "anna", annaCertificate), new: renewed(),
			writer: successor, wantMint: true, want: keysOf("7", "anna", successor),
		},
		"the first renewal after a mint that knew no writer": {
			old: makeHeldLease().Minted("6", "anna", ""), new: renewed(),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"a rotated certificate is the same term": {
			old: makeHeldLease().Minted("6", "anna", annaCertificate), new: renewed(),
			writer: borisCertificate, want: keysOf("6", "anna", borisCertificate),
		},
		"another user is the same term": {
			old: makeHeldLease().Minted("6", "anna", annaUser), new: renewed(),
			writer: borisUser, want: keysOf("6", "anna", borisUser),
		},
		"a certificate that renews nothing": {
			old: makeHeldLease().Minted("6", "anna", annaCertificate), new: makeHeldLease(),
			writer: borisCertificate, want: keysOf("6", "anna", annaCertificate),
		},
		"a certificate never replaces a Pod": {
			old: makeHeldLease(), new: renewed(),
			writer: annaCertificate, want: keysOf("6", "anna", anna),
		},
		"a user never replaces a Pod": {
			old: makeHeldLease(), new: renewed(),
			writer: annaUser, want: keysOf("6", "anna", anna),
		},
	})
}

// M2: the value of a token.
func TestM2(t *testing.T) {
	cases := map[string]struct {
		old    string // the token on the Lease
		fenced fence.FencedLease
		want   string

		wantCode   int32
		wantReason fence.Reason
		wantSays   string
	}{
		"the first of all": {
			fenced: fence.FencedLease{Exists: true, MinToken: 1}, want: "1",
		},
		"without a minToken": {
			fenced: fence.FencedLease{Exists: true}, want: "1",
		},
		"the first, from minToken": {
			fenced: fence.FencedLease{Exists: true, MinToken: 100}, want: "100",
		},
		"one more than the last": {
			old: "6", fenced: fence.FencedLease{Exists: true, StatusToken: 6, MinToken: 1}, want: "7",
		},
		"the status lags": {
			old: "6", fenced: fence.FencedLease{Exists: true, StatusToken: 4, MinToken: 1}, want: "7",
		},
		"a recreated Lease continues from the status": {
			fenced: fence.FencedLease{Exists: true, StatusToken: 6, MinToken: 1}, want: "7",
		},
		"a recreated FencedLease continues from the Lease": {
			old: "6", fenced: fence.FencedLease{Exists: true, MinToken: 1}, want: "7",
		},
		"minToken is raised": {
			old: "6", fenced: fence.FencedLease{Exists: true, StatusToken: 6, MinToken: 50}, want: "50",
		},
		"minToken is the very next": {
			old: "6", fenced: fence.FencedLease{Exists: true, StatusToken: 6, MinToken: 7}, want: "7",
		},
		"a stored token that is not canonical counts as absent": {
			old: "0900", fenced: fence.FencedLease{Exists: true, StatusToken: 6, MinToken: 1}, want: "7",
		},
		"the largest": {
			old: "9007199254740990", fenced: fence.FencedLease{Exists: true}, want: "9007199254740991",
		},
		"none is left on the Lease": {
			old: "9007199254740991", fenced: fence.FencedLease{Exists: true},
			wantCode: 422, wantReason: fence.ReasonExhausted, wantSays: "move to a new FencedLease and a new Lease",
		},
		"none is left in the status": {
			old: "6", fenced: fence.FencedLease{Exists: true, StatusToken: fence.MaxToken},
			wantCode: 422, wantReason: fence.ReasonExhausted, wantSays: "the last was 9007199254740991",
		},
		"a token is never guessed": {
			old:      "6",
			wantCode: 503, wantReason: fence.ReasonUnavailable, wantSays: "try again",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := fence.PlanLease(fence.LeaseWrite{
				Old: makeHeldLease().Minted(tc.old, "anna", anna).Obj(), New: *takenOver().Obj(), Writer: boris,
			})
			keys, refusal := plan.Mint(tc.fenced)
			if tc.wantCode != 0 {
				checkRefusal(t, refusal, tc.wantCode, tc.wantReason, tc.wantSays)
				return
			}
			if refusal != nil {
				t.Fatalf("refused: %s", refusal.Message)
			}
			if diff := cmp.Diff(keysOf(tc.want, "boris", boris), keys); diff != "" {
				t.Errorf("keys (-want,+got):\n%s", diff)
			}
		})
	}
}

// M3: who wrote the acquisition, where that is not the holder itself.
func TestM3(t *testing.T) {
	testLeaseWrites(t, map[string]leaseCase{
		"the holder": {
			old: makeHeldLease(), new: takenOver(),
			writer: boris, wantMint: true, want: keysOf("7", "boris", boris),
		},
		"the operator is not the holder": {
			old: makeHeldLease(), new: takenOver(),
			writer: "pod/operator", byOperator: true, wantMint: true, want: keysOf("7", "boris", ""),
		},
		"coordinated leader election is not the holder": {
			old: makeHeldLease(), new: takenOver(),
			writer: "user/system:apiserver", byAPIServer: true, wantMint: true, want: keysOf("7", "boris", ""),
		},
		"the holder's next renewal records it": {
			old: takenOver().Minted("7", "boris", ""), new: takenOver().RenewedAt("11:01"),
			writer: boris, want: keysOf("7", "boris", boris),
		},
		"no renewal by the API server records anybody": {
			old: takenOver().Minted("7", "boris", ""), new: takenOver().RenewedAt("11:01"),
			writer: "user/system:apiserver", byAPIServer: true, want: keysOf("7", "boris", ""),
		},
	})
}

// M4: our keys come from the stored Lease, whatever the writer sent.
func TestM4(t *testing.T) {
	forged := func() *leaseBuilder { return renewed().Minted("900", "mallory", "pod/mallory") }
	testLeaseWrites(t, map[string]leaseCase{
		"a forger": {
			old: makeHeldLease(), new: makeHeldLease().Minted("900", "mallory", "pod/mallory"),
			writer: "pod/mallory", want: keysOf("6", "anna", anna),
		},
		"a forger in a renewal": {
			old: makeHeldLease(), new: forged(),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"a forger in an acquisition": {
			old: makeHeldLease(), new: takenOver().Minted("900", "boris", boris),
			writer: boris, wantMint: true, want: keysOf("7", "boris", boris),
		},
		"a client that rebuilds the Lease": {
			old: makeHeldLease(), new: renewed().FencedBy("").Minted("", "", ""),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"a client that rebuilds the Lease as it acquires": {
			old: makeHeldLease(), new: takenOver().FencedBy("").Minted("", "", ""),
			writer: boris, wantMint: true, want: keysOf("7", "boris", boris),
		},
		"our label put on by a stranger": {
			old: makeHeldLease().FencedBy("").Minted("", "", ""), new: renewed(),
			writer: anna, want: fence.Keys{},
		},
		"our label on a Lease that a stranger creates": {
			new:    makeHeldLease(),
			writer: anna, want: fence.Keys{},
		},
		"our label taken off by a stranger": {
			old: makeHeldLease(), new: makeHeldLease().FencedBy(""),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"our label turned to another FencedLease": {
			old: makeHeldLease(), new: makeHeldLease().FencedBy("invoices"),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"retired put on by a stranger": {
			old: makeHeldLease(), new: makeHeldLease().Retired(),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"retired taken off by a stranger": {
			old: makeHeldLease().Retired(), new: makeHeldLease(),
			writer: anna, want: retiredKeysOf("anna"),
		},
		"coordinated leader election is a stranger": {
			old: makeHeldLease(), new: makeHeldLease().FencedBy("").Minted("900", "", ""),
			byAPIServer: true, want: keysOf("6", "anna", anna),
		},
		"the operator creates the Lease": {
			new:        makeLease(),
			byOperator: true, want: fence.Keys{FencedBy: payments},
		},
		"the operator takes our label off": {
			old: makeHeldLease(), new: makeHeldLease().FencedBy(""),
			byOperator: true, want: fence.Keys{Token: "6", TokenFor: "anna", TokenHolder: string(anna)},
		},
		"the operator puts retired on": {
			old: makeHeldLease(), new: makeHeldLease().Retired(),
			byOperator: true, want: retiredKeysOf("anna"),
		},
		"the operator clears token-for": {
			old: makeHeldLease(), new: makeHeldLease().Minted("6", "", anna),
			byOperator: true, want: keysOf("6", "", anna),
		},
		"and the holder's own renewal mints": {
			old: makeHeldLease().Minted("6", "", anna), new: renewed().Minted("6", "", anna),
			writer: anna, wantMint: true, want: keysOf("7", "anna", anna),
		},
		"the operator never writes a number": {
			old: makeHeldLease(), new: makeHeldLease().Minted("900", "anna", anna),
			byOperator: true, want: keysOf("6", "anna", anna),
		},
		"nor another's name": {
			old: makeHeldLease(), new: makeHeldLease().Minted("6", "boris", boris),
			byOperator: true, want: keysOf("6", "anna", anna),
		},
	})
}

// The operator may take retired off and clear token-for in one write: the token
// then rises in the holder's own next renewal, as M4 has it, not before.
func TestM4ClearedWhileRetiredComesOff(t *testing.T) {
	testLeaseWrites(t, map[string]leaseCase{
		"in the same term": {
			old: makeHeldLease().Retired(), new: makeHeldLease().Minted("6", "", anna),
			byOperator: true, want: keysOf("6", "", anna),
		},
		"after the hands have changed": {
			old: makeHeldLease().Retired().Minted("6", "", anna), new: makeHeldLease().Minted("6", "", anna),
			byOperator: true, wantMint: true, want: keysOf("7", "anna", ""),
		},
	})
}

// M5: expired or released is not superseded.
func TestM5(t *testing.T) {
	testLeaseWrites(t, map[string]leaseCase{
		"a release keeps everything": {
			old: makeHeldLease(), new: makeHeldLease().Holder("").AcquiredAt("10:06").RenewedAt("10:06"),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"a release by a client that rebuilds the Lease": {
			old: makeHeldLease(), new: makeHeldLease().Holder("").FencedBy("").Minted("", "", ""),
			writer: anna, want: keysOf("6", "anna", anna),
		},
		"a release by another Pod": {
			old: makeHeldLease(), new: makeHeldLease().Holder("").RenewedAt("10:06"),
			writer: boris, want: keysOf("6", "anna", anna),
		},
	})
}

// M10: a retired Lease.
func TestM10(t *testing.T) {
	retired := func() *leaseBuilder { return makeHeldLease().Retired() }
	acquisition := fence.LeaseWrite{Old: retired().Obj(), New: *takenOver().Retired().Obj(), Writer: boris}

	testLeaseWrites(t, map[string]leaseCase{
		"its FencedLease exists again": {
			old: retired(), new: takenOver().Retired(),
			writer: boris, wantMint: true, want: keysOf("7", "boris", boris),
		},
		"the same holder acquires again": {
			old: retired(), new: retired().AcquiredAt("11:00"),
			writer: anna, wantMint: true, want: keysOf("7", "anna", anna),
		},
		"a renewal": {
			old: retired(), new: retired().RenewedAt("10:06"),
			writer: anna, want: retiredKeysOf("anna"),
		},
		"a renewal by another Pod under the same name": {
			old: retired(), new: retired().RenewedAt("10:06"),
			writer: boris, want: retiredKeysOf("anna"),
		},
		"a release": {
			old: retired(), new: retired().Holder(""),
			writer: anna, want: retiredKeysOf("anna"),
		},
		"a forger": {
			old: retired(), new: retired().Minted("900", "mallory", "pod/mallory"),
			writer: "pod/mallory", want: retiredKeysOf("anna"),
		},
	})

	t.Run("its FencedLease is gone: unminted, and the next term will not be mistaken for the old one", func(t *testing.T) {
		keys, refusal := fence.PlanLease(acquisition).Mint(fence.FencedLease{})
		if refusal != nil {
			t.Fatalf("refused: %s", refusal.Message)
		}
		if diff := cmp.Diff(retiredKeysOf(""), keys); diff != "" {
			t.Errorf("keys (-want,+got):\n%s", diff)
		}
		write := acquisition
		write.New.Keys = keys
		if refusal := fence.CheckLease(write); refusal != nil {
			t.Errorf("its own check refuses it: %s", refusal.Message)
		}
	})
}
