package protocol

import (
	"testing"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

func identities(kinds ...v1alpha1.IdentityKind) func(*v1alpha1.FencedLeaseSpec) {
	return func(spec *v1alpha1.FencedLeaseSpec) { spec.Identities = kinds }
}

// TestG7Identities: whose identity proves the current token, which the object
// carries already. Whoever is not on the list presents it with each write.
func TestG7Identities(t *testing.T) {
	t.Parallel()
	type who func(*suite.World) *suite.Actor
	pod := func(w *suite.World) *suite.Actor { return w.Pod("leader") }
	certificate := func(w *suite.World) *suite.Actor { return w.User("leader") }
	user := func(w *suite.World) *suite.Actor { return w.As("leader") }

	for name, tc := range map[string]struct {
		change func(*v1alpha1.FencedLeaseSpec)
		leader who
		proves bool
	}{
		"default, Pod":                  {func(*v1alpha1.FencedLeaseSpec) {}, pod, true},
		"default, certificate":          {func(*v1alpha1.FencedLeaseSpec) {}, certificate, false},
		"default, user":                 {func(*v1alpha1.FencedLeaseSpec) {}, user, false},
		"[Certificate], Pod":            {identities(v1alpha1.IdentityCertificate), pod, false},
		"[Certificate], certificate":    {identities(v1alpha1.IdentityCertificate), certificate, true},
		"[Certificate], user":           {identities(v1alpha1.IdentityCertificate), user, false},
		"[Pod Certificate], Pod":        {identities(v1alpha1.IdentityPod, v1alpha1.IdentityCertificate), pod, true},
		"[Pod Certificate],certificate": {identities(v1alpha1.IdentityPod, v1alpha1.IdentityCertificate), certificate, true},
		"[Pod Certificate], user":       {identities(v1alpha1.IdentityPod, v1alpha1.IdentityCertificate), user, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := suite.New(t)
			w.FencedLease("payments", tc.change)
			leader := tc.leader(w)
			one := leader.Acquire("payments", "leader")
			w.Guarded("account", "payments", one)
			w.Guarded("deleted", "payments", one)

			inherits := leader.Modify("account", suite.Balance("1"))
			deletes := remove(w, leader, "deleted")
			if tc.proves {
				suite.Admitted(t, inherits)
				suite.Admitted(t, deletes)
			} else {
				const told = "you hold the current token: present 1"
				suite.Refused(t, inherits, 428, fence.ReasonRequired, told)
				suite.Refused(t, deletes, 428, fence.ReasonRequired, told)
			}
			// Presented afresh it counts from anyone, listed or not.
			suite.Admitted(t, leader.Modify("account", suite.Balance("2"), write("1/x")))
			// And an identity that the token was not minted to proves nothing.
			other := w.Pod("other")
			suite.Refused(t, other.Modify("account", suite.Balance("3")), 428, fence.ReasonRequired, "no claim")
		})
	}
}

// TestG7IdentityOfAnotherPod: the same service account in another Pod is another
// process, and so is a Pod of the same name that came later.
func TestG7IdentityOfAnotherPod(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	suite.Refused(t, s.Pod("third").Modify("account", suite.Balance("1")), 428, fence.ReasonRequired)
	// A second token of the same Pod is the same process.
	suite.Admitted(t, s.Pod("second").Modify("account", suite.Balance("1")))
}

// TestG7IdentityAfterTakeover: a proof ends with the term, whoever sends it.
func TestG7IdentityAfterTakeover(t *testing.T) {
	t.Parallel()
	s := secondTerm(t, nil)
	s.Guarded("account", "payments", 2)
	suite.Admitted(t, s.second.Modify("account", suite.Balance("1")))
	s.first.Acquire("payments", "first")
	suite.Refused(t, s.second.Modify("account", suite.Balance("2")), 412, fence.ReasonStale, "would leave token 2, but the newest is 3")
	// The new holder proves nothing before the object carries its token.
	suite.Refused(t, s.first.Modify("account", suite.Balance("2")), 428, fence.ReasonRequired, "present 3")
	suite.Admitted(t, s.first.Modify("account", suite.Token("3")))
	suite.Admitted(t, s.first.Modify("account", suite.Balance("2")))
}
