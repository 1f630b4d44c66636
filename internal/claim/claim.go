// Package claim makes the writes of any Kubernetes client carry a fencing token:
// of client-go, typed or dynamic, of controller-runtime and of kubectl. It sits
// below them all, in their HTTP transport, so that code that knows nothing of
// fencing is fenced as it is.
//
// A write carries its claim in one of three ways (DESIGN.md section 5):
//
//   - stamped: the body gets the annotation fencedlease.io/token, and a nonce in
//     fencedlease.io/write unless the writer identity proves the token;
//   - proven: nothing is added, because the object carries the token already and
//     the identity proves it, after a seal where it does not carry it yet;
//   - as a user extra: the client impersonates itself, with the token added.
//
// A write that changes what no guard label reaches carries none.
//
// Where the token comes from, and what its end means, is up to a [Source]. The
// fence decides; nothing here makes a write safe by itself.
package claim

import (
	"context"

	"github.com/fencedlease/fencedlease/fence"
)

// Claim is what a write presents.
type Claim struct {
	Token fence.Token

	// ByIdentity says that the writer identity proves the token where the object
	// carries it already (claim rule 3 of DESIGN.md section 5), so that no nonce
	// is needed.
	ByIdentity bool

	// Term is what the claim is good for: a write that is on its way when it is over is
	// cut off. Nil if that is never known.
	Term Term
}

// Term is something that comes to an end.
type Term interface {
	// AfterFunc calls f, in a goroutine of its own, when the term is over. Stop gives
	// up on that.
	AfterFunc(f func()) (stop func() bool)

	// Err is why it is over, nil before.
	Err() error
}

// Source says what writes present, and is told what came back. It is called from
// many goroutines at a time.
type Source interface {
	// Claim is what a write made with this context presents. An error stops the
	// write before any request is sent; the caller gets it wrapped in *url.Error.
	Claim(ctx context.Context) (Claim, error)

	// Refused is told of each refusal by the fence before the caller sees it, but
	// not of one that sending the write again mends. If Claim then has a larger token,
	// which the same term was given meanwhile, the write is sent once more, with that.
	Refused(ctx context.Context, claim Claim, refusal fence.Refusal)

	// NotByIdentity is told that the identity did not prove the token, although it
	// is current: later claims should not rely on it.
	NotByIdentity(claim Claim)
}

// Fixed is a Source of one token that never ends: the fence alone says when it is
// over.
func Fixed(token fence.Token) Source { return fixed(token) }

type fixed fence.Token

func (f fixed) Claim(context.Context) (Claim, error) { return Claim{Token: fence.Token(f)}, nil }

func (fixed) Refused(context.Context, Claim, fence.Refusal) {}

func (fixed) NotByIdentity(Claim) {}
