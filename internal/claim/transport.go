package claim

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/fence"
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

// maxMends is how often a write whose claim was not proven is sent again.
const maxMends = 2

// RoundTrip sends a request with its claim. A write that was refused for want of
// one, in a term that is alive, is sent again in another way: what was refused is
// never committed.
func (c *claiming) RoundTrip(req *http.Request) (*http.Response, error) {
	target, ok := parseTarget(req.URL.Path)
	if isRead(req.Method) || !ok || !target.guardable() {
		return c.next.RoundTrip(req)
	}
	ctx := req.Context()
	claim, err := c.source.Claim(ctx)
	if err != nil {
		discard(req.Body)
		return nil, err
	}
	if !target.reached() { // asked for all the same, so that the end of a term stops it
		return c.next.RoundTrip(req)
	}

	w, err := newWrite(c, req, target, claim)
	if err != nil {
		return nil, err
	}
	for mends := 0; ; mends++ {
		resp, err := w.send()
		if err != nil {
			return nil, err
		}
		refused, ok := refusalIn(resp)
		if !ok {
			return resp, nil
		}
		if mends == maxMends || !unproven(refused, claim) || !w.mend() {
			c.source.Refused(ctx, claim, refused)
			return resp, nil
		}
		discard(resp.Body)
	}
}

// unproven says whether the fence refused a write because it saw no claim in it,
// although the claim is of the living term. It answers 428, or 412 where the write
// would leave an older mark and the writer does not hold the token by identity
// (row G7). A 412 for a claim that it saw is never such a refusal.
func unproven(refused fence.Refusal, claim Claim) bool {
	return (refused.Reason == fence.ReasonRequired || refused.Reason == fence.ReasonStale) &&
		refused.Facts.Presented == fence.None && refused.Facts.Current == claim.Token
}
