package main

import (
	"github.com/fencedlease/fencedlease/fence"
)

// markState is how the mark of an object stands to the current token.
type markState string

const (
	// sealed: the current token has written it, so all older ones are shut out.
	sealed markState = "sealed"

	// behind: the current token has not written it yet.
	behind markState = "behind"

	// unmarked: it was written without a token, before the first term.
	unmarked markState = "unmarked"

	// regressed: its mark is ahead of the counter, which was lost.
	regressed markState = "regressed"
)

// stateOf is how a mark stands to the current token.
func stateOf(mark, current fence.Token) markState {
	switch {
	case mark == fence.None:
		return unmarked
	case mark > current:
		return regressed
	case mark == current:
		return sealed
	default:
		return behind
	}
}

// markOf is the token that is stored on an object. One that is not canonical
// counts as absent.
func markOf(o fence.Object) fence.Token {
	if o.Token == nil {
		return fence.None
	}
	mark, err := fence.ParseToken(*o.Token)
	if err != nil {
		return fence.None
	}
	return mark
}
