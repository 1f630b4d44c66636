package fence

import "strings"

// Identity is the writer identity of a request as admission sees it:
// "pod/<uid>", "certificate/<hash>" or "user/<name>". Empty means unknown.
type Identity string

// IdentityKind tells the three forms of [Identity] apart. Its values are those
// of spec.identities, where User cannot be chosen: several processes share a
// user name, so it never proves a token.
type IdentityKind string

// The kinds of identity.
const (
	KindPod         IdentityKind = "Pod"
	KindCertificate IdentityKind = "Certificate"
	KindUser        IdentityKind = "User"
)

const (
	podPrefix         = "pod/"
	certificatePrefix = "certificate/"
	userPrefix        = "user/"

	extraPodUID       = "authentication.kubernetes.io/pod-uid"
	extraCredentialID = "authentication.kubernetes.io/credential-id"
	x509Prefix        = "X509SHA256="
)

// IdentityOf works out who makes a request from its user name and user extra.
// A bound service-account token names its Pod; a client certificate, its hash.
// Other credential ids change with each refresh and are no identity.
// The matchConditions of the mint webhook work out the same in CEL.
func IdentityOf(username string, extra map[string][]string) Identity {
	if uid, ok := single(extra[extraPodUID]); ok {
		return Identity(podPrefix + uid)
	}
	for _, id := range extra[extraCredentialID] {
		if hash, ok := strings.CutPrefix(id, x509Prefix); ok {
			return Identity(certificatePrefix + hash)
		}
	}
	return Identity(userPrefix + username)
}

// Kind is the kind of the identity; [KindUser] for an unknown one.
func (i Identity) Kind() IdentityKind {
	switch {
	case strings.HasPrefix(string(i), podPrefix):
		return KindPod
	case strings.HasPrefix(string(i), certificatePrefix):
		return KindCertificate
	default:
		return KindUser
	}
}

// single is the only value that is not empty, if there is exactly one.
func single(values []string) (string, bool) {
	found := ""
	for _, v := range values {
		if v == "" {
			continue
		}
		if found != "" {
			return "", false
		}
		found = v
	}
	return found, found != ""
}
