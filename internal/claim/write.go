package claim

import (
	"crypto/rand"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/transport"
)

// way is how a write carries its claim.
type way int

const (
	// stamped: in the annotations of its body.
	stamped way = iota
	// proven: the object carries the token, and the identity proves it.
	proven
	// asExtra: in a user extra of the writer, which impersonates itself.
	asExtra
)

// write is one write on its way: how it carries its claim, and what was tried.
type write struct {
	*claiming

	req   *http.Request // the caller's, which is never changed
	media string
	body  []byte
	doc   *document // the body as an object; nil if it is none
	claim Claim

	status     bool // it goes to /status
	way        way
	byIdentity bool   // the claim's, until the fence does not see it
	salt       string // of the nonce
	sealable   bool   // a seal would make the object carry the token
	sealFirst  bool
	sealed     bool
}

// newWrite decides how a write carries its claim.
func newWrite(c *claiming, req *http.Request, t target, claim Claim, body []byte) (*write, error) {
	w := &write{
		claiming: c, req: req, media: mediaType(req.Header), body: body, claim: claim,
		status: t.subresource == subresourceStatus, byIdentity: claim.ByIdentity,
	}
	if req.Method == http.MethodDelete {
		// Some clients would rather have the answer in a form that cannot be read here.
		w.req = req.Clone(req.Context())
		w.req.Header.Set("Accept", "application/json")
	}
	if isObject(req.Method, w.media) {
		var err error
		// What is sent to /status as it is, the API server itself may refuse.
		if w.doc, err = parseDocument(body); err != nil && !w.status {
			return nil, fmt.Errorf("claim: fencing token %s cannot be put into the body of %s %s: %w", claim.Token, req.Method, req.URL.Path, err)
		}
	}
	if w.doc != nil && !w.status {
		// A patch that removes all annotations cannot set one, and what it leaves has
		// no mark that an identity could prove; from the user extra it is set again.
		if w.way = stamped; w.doc.removesAnnotations && isMergePatch(w.media) {
			w.way = asExtra
		}
		return w, nil
	}

	w.sealable = w.status && req.Method != http.MethodDelete || w.media == string(types.JSONPatchType)
	// A dry run must not seal, so the object may not carry the token.
	if !claim.ByIdentity || w.dryRun() && w.sealable {
		w.way = asExtra
		return w, nil
	}
	w.way = proven
	// A write to /status reaches the fence with the stored annotations, whatever its
	// body says: the mark must be current before an identity can prove it. Of a PUT
	// the body tells what the mark is; other writes are sent first.
	w.sealFirst = w.status && req.Method == http.MethodPut && w.doc != nil && w.doc.guarded() && !w.doc.carries(claim.Token)
	return w, nil
}

// send sends the write once, after a seal where it needs one. A seal that is
// refused is the answer to the write.
func (w *write) send() (*http.Response, error) {
	if w.sealFirst {
		if refused, err := w.seal(); refused != nil || err != nil {
			return refused, err
		}
	}
	switch w.way {
	case stamped:
		body, err := w.stamp()
		if err != nil {
			return nil, err
		}
		return w.next.RoundTrip(withBody(w.req, body))
	case asExtra:
		return w.impersonate(withBody(w.req, w.body))
	default:
		return w.next.RoundTrip(withBody(w.req, w.body))
	}
}

// mend chooses another way for a write whose claim the fence did not see, and says
// whether there is one.
func (w *write) mend() bool {
	switch {
	case w.way == asExtra:
		return false
	case w.way == stamped && !w.byIdentity:
		// The nonce was the stored one already: this very write was made before, and
		// somebody else, who left the nonce alone, has changed the object since.
		w.salt = "-" + rand.Text()[:8]
	case w.sealable:
		w.sealFirst = true
	default:
		w.source.NotByIdentity(w.claim)
		w.byIdentity = false
		if w.way == proven {
			w.way = asExtra
		}
	}
	return true
}

// mendContested chooses another way for an apply that would have to take our
// annotations over from another field manager, and says whether there is one. With
// force it would not be asked.
func (w *write) mendContested() bool {
	switch {
	case w.way != stamped || w.media != string(types.ApplyYAMLPatchType):
		return false
	case w.byIdentity && !w.sealed && !w.dryRun():
		// After a seal the apply says what is stored, which is no conflict.
		w.sealFirst = true
	default:
		w.way = asExtra
	}
	return true
}

func (w *write) dryRun() bool { return w.req.URL.Query().Has("dryRun") }

// stamp is the body with the claim.
func (w *write) stamp() ([]byte, error) {
	nonce := ""
	if !w.byIdentity {
		var err error
		if nonce, err = w.doc.nonce(w.req.Method, w.media, w.claim.Token, w.salt); err != nil {
			return nil, err
		}
	}
	return w.doc.stamped(w.claim.Token, nonce)
}

// extraTokenHeader is the header of the token as a user extra. Its key is escaped as
// client-go and the API server do it.
const extraTokenHeader = transport.ImpersonateUserExtraHeaderPrefix + "Fencedlease.io%2ftoken"

// impersonate sends a request, which it may change, with the claim as a user extra.
// A request that impersonates somebody already, as its config or its caller chose,
// stays that user's; any other becomes one in which the client impersonates itself.
func (w *write) impersonate(req *http.Request) (*http.Response, error) {
	if req.Header.Get(transport.ImpersonateUserHeader) != "" {
		req.Header.Set(extraTokenHeader, w.claim.Token.String())
		return w.next.RoundTrip(req)
	}
	self, err := w.self(req.Context())
	if err != nil {
		return nil, fmt.Errorf("claim: %s %s can carry fencing token %s as a user extra only, and who we are could not be learnt: %w",
			req.Method, req.URL.Path, w.claim.Token, err)
	}
	as := Presenting(self, w.claim.Token)
	return transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig(as), w.next).RoundTrip(req)
}
