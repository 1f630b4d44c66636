package claim

import (
	"context"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/refusal"
)

// Wrap is a copy of config whose writes carry the claim that source says. Its
// bodies are JSON, since nothing can be put into others, and the answers too.
func Wrap(config *rest.Config, source Source) *rest.Config {
	self := WhoAmI(config)
	wrapped := rest.CopyConfig(config)
	wrapped.ContentType = "application/json"
	wrapped.AcceptContentTypes = "application/json"
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return NewTransport(next, source, self)
	})
	return wrapped
}

// NewTransport is a transport whose writes carry the claim that source says. What
// cannot be guarded passes untouched: reads, what is no resource, reviews, Events
// and Leases.
//
// Its place is where rest.Config.Wrap puts it, next to the wire: the headers with
// which a config impersonates somebody are there already, and stay. It works around
// a client's whole transport as well: who the client is then includes whom its
// config impersonates, and client-go leaves the headers alone that it finds.
func NewTransport(next http.RoundTripper, source Source, self Self) http.RoundTripper {
	return &claiming{next: next, source: source, self: self}
}

type claiming struct {
	next   http.RoundTripper
	source Source
	self   Self
}

var _ utilnet.RoundTripperWrapper = &claiming{}

// WrappedRoundTripper lets client-go reach the connections below.
func (c *claiming) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip sends a request with its claim, and ends it with the claim.
func (c *claiming) RoundTrip(req *http.Request) (*http.Response, error) {
	target, ok := parseTarget(req.URL.Path)
	if isRead(req.Method) || !ok || !target.guardable() {
		return c.next.RoundTrip(req)
	}
	claim, err := c.source.Claim(req.Context())
	if err != nil {
		discard(req.Body)
		return nil, err
	}
	return within(req, claim.Term, func(req *http.Request) (*http.Response, error) {
		if !target.reached() { // its claim was asked for, so that the end of a term stops it
			return c.next.RoundTrip(req)
		}
		return c.carry(req, target, claim)
	})
}

// carry sends a write with its claim. If the fence refuses it because the term's own
// token was raised meanwhile, it is sent once more with the new one: the term is the
// same, nobody else has led since, and what was refused was not committed.
func (c *claiming) carry(req *http.Request, target target, claim Claim) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		w, err := newWrite(c, req, target, claim, body)
		if err != nil {
			return nil, err
		}
		resp, refused, err := w.sendMended()
		if err != nil || refused == nil {
			return resp, err
		}
		c.source.Refused(req.Context(), claim, *refused)
		raised := claim
		if !again && aboutClaim(*refused) && refused.Facts.Current > claim.Token {
			raised = c.claimAgain(req.Context(), claim)
		}
		if raised.Token == claim.Token {
			return resp, nil
		}
		discard(resp.Body)
		claim = raised
	}
}

// claimAgain is the claim after a refusal: the same, if the term is over, so that
// the caller gets the refusal that ended it.
func (c *claiming) claimAgain(ctx context.Context, before Claim) Claim {
	after, err := c.source.Claim(ctx)
	if err != nil || after.Token < before.Token {
		return before
	}
	return after
}

// maxMends is how often a write whose claim was not seen is sent again.
const maxMends = 2

// sendMended sends a write and, where it did not come through for the way in which
// it carried its claim, sends it again in another way: what was refused is never
// committed. It returns the fence's refusal beside the response that has it.
func (w *write) sendMended() (*http.Response, *fence.Refusal, error) {
	for mends := 0; ; mends++ {
		resp, err := w.send()
		if err != nil {
			return nil, nil, err
		}
		status := statusIn(resp)
		if status == nil {
			return resp, nil, nil
		}
		refused, isRefusal := refusal.Of(status)
		switch {
		case mends == maxMends:
		case isRefusal && unproven(refused, w.claim) && w.mend(),
			isContested(status) && w.mendContested():
			discard(resp.Body)
			continue
		}
		if !isRefusal {
			return resp, nil, nil
		}
		return resp, &refused, nil
	}
}

// unproven says whether the fence refused a write because it saw no claim in it,
// although the claim is of the living term. It answers 428, or 412 where the write
// would leave an older mark and the writer does not hold the token by identity
// (row G7). A 412 for a claim that it saw is never such a refusal.
func unproven(refused fence.Refusal, claim Claim) bool {
	return aboutClaim(refused) && refused.Facts.Presented == fence.None && refused.Facts.Current == claim.Token
}

// aboutClaim says whether a refusal is about the claim of a write, and not about
// the object or the fence.
func aboutClaim(refused fence.Refusal) bool {
	return refused.Reason == fence.ReasonRequired || refused.Reason == fence.ReasonStale
}
