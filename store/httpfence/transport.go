package httpfence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/fencedlease/fencedlease/fence"
)

// Variable is the environment variable in which kubectl fence run gives its command the
// token.
const Variable = "FENCING_TOKEN"

// Source is where a client has its token from. It is asked for each request, and an error
// of it is the request's: nothing is sent then.
type Source func(context.Context) (fence.Token, error)

// Term is a term of leadership: a Term of package leader is one.
type Term interface {
	// Token is the term's, which may rise.
	Token() fence.Token

	// Err says how the term ended, nil while it is live.
	Err() error
}

// OfTerm takes the token from a term, as long as it is live.
func OfTerm(term Term) Source {
	return func(context.Context) (fence.Token, error) {
		token := term.Token()
		return token, term.Err()
	}
}

// errNoVariable says that a program runs alone that should not.
var errNoVariable = errors.New("there is no " + Variable + " in the environment: start the program with kubectl fence run")

// Environment takes the token from the environment variable FENCING_TOKEN, as kubectl fence
// run gives it to its command. It does not change while the command runs.
func Environment() Source {
	return func(context.Context) (fence.Token, error) {
		text, ok := os.LookupEnv(Variable)
		if !ok {
			return fence.None, errNoVariable
		}
		token, err := fence.ParseToken(text)
		if err != nil {
			return fence.None, fmt.Errorf("%s has %.64q: %w", Variable, text, err)
		}
		return token, nil
	}
}

// Transport puts a token into every request that has none, whatever its method.
//
// A refusal is an answer like any other: see [ProblemOf]. Code 412 says that this program
// does not lead any more, which its term may not know yet.
type Transport struct {
	// Source is where tokens come from. Required.
	Source Source

	// Base sends the requests; nil for [http.DefaultTransport].
	Base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if len(r.Header.Values(Header)) > 0 {
		return base.RoundTrip(r)
	}
	token, err := t.Source(r.Context())
	if err == nil && token == fence.None {
		err = errors.New("there is no token")
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as every RoundTripper must
		}
		return nil, fmt.Errorf("httpfence: nothing was sent: %w", err)
	}
	r = r.Clone(r.Context()) // the caller's must not change
	r.Header.Set(Header, token.String())
	return base.RoundTrip(r)
}
