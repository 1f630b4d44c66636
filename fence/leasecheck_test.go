package fence_test

import (
	"testing"

	"github.com/fencedlease/fencedlease/fence"
)

// M8: the rules again, on the Lease as it would be stored.
func TestM8(t *testing.T) {
	cases := map[string]struct {
		leaseCase
		wantSays string // "" where the Lease is in order
	}{
		"a renewal that keeps our keys": {
			leaseCase: leaseCase{old: makeHeldLease(), new: renewed(), writer: anna},
		},
		"a renewal that changes the token": {
			leaseCase: leaseCase{old: makeHeldLease(), new: renewed().Minted("7", "anna", anna), writer: anna},
			wantSays:  "were changed after the mint webhook",
		},
		"a renewal that loses our label": {
			leaseCase: leaseCase{old: makeHeldLease(), new: renewed().FencedBy(""), writer: anna},
			wantSays:  "were changed after the mint webhook",
		},
		"an acquisition with its token": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver().Minted("7", "boris", boris), writer: boris},
		},
		"an acquisition with a token that minToken raised": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver().Minted("50", "boris", boris), writer: boris},
		},
		"an acquisition that keeps the old token": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver(), writer: boris},
			wantSays:  "the new token that the mint webhook gave it is missing",
		},
		"an acquisition whose token does not grow": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver().Minted("6", "boris", boris), writer: boris},
			wantSays:  "missing",
		},
		"an acquisition whose token falls": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver().Minted("5", "boris", boris), writer: boris},
			wantSays:  "missing",
		},
		"an acquisition whose token is not canonical": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver().Minted("07", "boris", boris), writer: boris},
			wantSays:  "missing",
		},
		"an acquisition without a token": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver().Minted("", "", ""), writer: boris},
			wantSays:  "missing",
		},
		"an acquisition with a token for another": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver().Minted("7", "anna", boris), writer: boris},
			wantSays:  "missing",
		},
		"an acquisition with another's Pod": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver().Minted("7", "boris", anna), writer: boris},
			wantSays:  "missing",
		},
		"an acquisition that loses our label": {
			leaseCase: leaseCase{old: makeHeldLease(), new: takenOver().FencedBy("").Minted("7", "boris", boris), writer: boris},
			wantSays:  "missing",
		},
		"a retired Lease, acquired unminted": {
			leaseCase: leaseCase{old: makeHeldLease().Retired(), new: takenOver().Retired().Minted("6", "", anna), writer: boris},
		},
		"a retired Lease, acquired and minted": {
			leaseCase: leaseCase{old: makeHeldLease().Retired(), new: takenOver().Minted("7", "boris", boris), writer: boris},
		},
		"a retired Lease, acquired as if nothing had happened": {
			leaseCase: leaseCase{old: makeHeldLease().Retired(), new: takenOver().Retired(), writer: boris},
			wantSays:  "missing",
		},
		"a retired Lease, minted but still retired": {
			leaseCase: leaseCase{old: makeHeldLease().Retired(), new: takenOver().Retired().Minted("7", "boris", boris), writer: boris},
			wantSays:  "missing",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refusal := fence.CheckLease(tc.write())
			if tc.wantSays != "" {
				checkRefusal(t, refusal, 422, fence.ReasonInvalid, tc.wantSays)
				return
			}
			if refusal != nil {
				t.Errorf("refused: %s", refusal.Message)
			}
		})
	}
}

// M7, and M2 where the FencedLease cannot be read.
func TestRefusalsOfLeaseWrites(t *testing.T) {
	t.Run("the counter of a FencedLease is not deleted", func(t *testing.T) {
		refusal := fence.KeepLease(makeHeldLease().Obj().Keys)
		checkRefusal(t, refusal, 422, fence.ReasonFencedLeaseExists, "delete the FencedLease first")
		checkFacts(t, fence.Facts{Current: 6, Holder: "anna", Writer: anna}, refusal.Facts)
	})
	t.Run("a FencedLease that cannot be read", func(t *testing.T) {
		refusal := fence.CannotRead(payments, "timeout")
		checkRefusal(t, refusal, 503, fence.ReasonUnavailable, `FencedLease "payments" cannot be read (timeout)`)
	})
}
