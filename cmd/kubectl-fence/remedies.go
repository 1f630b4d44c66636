package main

import (
	"regexp"
	"slices"

	"github.com/fencedlease/fencedlease/fence"
)

// remedy is what a refusal means, and what to do about it.
type remedy struct {
	code   int32
	means  string
	remedy string
}

// reasons are those of all refusals, the most frequent first.
var reasons = []fence.Reason{
	fence.ReasonStale, fence.ReasonRequired, fence.ReasonNeverIssued, fence.ReasonInvalid, fence.ReasonRegressed,
	fence.ReasonExhausted, fence.ReasonNotFound, fence.ReasonFencedLeaseExists, fence.ReasonLeaseConflict, fence.ReasonUnavailable,
}

// remedies has an entry for each reason.
var remedies = map[fence.Reason]remedy{
	fence.ReasonStale: {412,
		"A newer term has begun, or has written the object: the token is of an earlier one.",
		"You are not the leader, or no longer: stop. To go on, acquire the Lease again, and read again before you write with the new token."},
	fence.ReasonRequired: {428,
		"The object is guarded, and the write presents no token. One that it merely sends back as it was stored is no claim.",
		"Present your token: `kubectl fence apply|patch|delete --token`, or the annotation or user extra that the message names."},
	fence.ReasonNeverIssued: {403,
		"The token is larger than any that was minted.",
		"Take the token from the answer to your own write to the Lease, and from nowhere else."},
	fence.ReasonInvalid: {422,
		"The token is malformed, or what would be stored is not the token that was presented, or the label moves from one FencedLease to another in one step.",
		"Write the token in base 10, without sign or leading zeros, and leave it to one place in the write. To move an object: `kubectl fence unguard`, then `kubectl fence guard`."},
	fence.ReasonRegressed: {422,
		"The object was written with a token that is ahead of the counter: the counter was lost, as by a restore from a backup.",
		"An administrator sets spec.minToken of the FencedLease above every mark (`kubectl fence status` shows them); the holder goes on with its next token."},
	fence.ReasonExhausted: {422,
		"The last token, 2^53-1, was minted.",
		"Move to a new FencedLease with a new Lease, under another name."},
	fence.ReasonNotFound: {422,
		"The object's label names a FencedLease that does not exist in its namespace.",
		"Create the FencedLease, or take the object out with `kubectl fence unguard`, which needs no token then."},
	fence.ReasonFencedLeaseExists: {422,
		"The Lease carries the counter of a FencedLease, so it cannot be deleted.",
		"To free the Lease: `kubectl fence release`. To be rid of it: delete the FencedLease first."},
	fence.ReasonLeaseConflict: {422,
		"Two FencedLeases name the same Lease; the first one keeps it.",
		"Delete one of the two, or give it a Lease of its own in spec.leaseName (which is set when it is created)."},
	fence.ReasonUnavailable: {503,
		"The current token could not be read, so nothing was admitted and nothing was changed.",
		"Try again. If it lasts, ask `kubectl fence check`, and see whether the operator runs."},
}

// reasonPattern is any of the reasons, as a word.
var reasonPattern = regexp.MustCompile(`\b(?:FencingToken[A-Z]\w+|FencedLease(?:NotFound|Exists)|LeaseConflict|FenceUnavailable)\b`)

// reasonsIn are the reasons that a text names, in the order in which it does.
func reasonsIn(text string) []fence.Reason {
	var found []fence.Reason
	for _, word := range reasonPattern.FindAllString(text, -1) {
		reason := fence.Reason(word)
		if _, known := remedies[reason]; known && !slices.Contains(found, reason) {
			found = append(found, reason)
		}
	}
	return found
}

// codePattern is a status code as a word, or in the JSON of a Status.
var codePattern = regexp.MustCompile(`\b(412|428)\b`)

// reasonsOfCodes are the reasons that the codes in a text stand for, where a code
// is enough to tell.
func reasonsOfCodes(text string) []fence.Reason {
	var found []fence.Reason
	for _, code := range codePattern.FindAllString(text, -1) {
		reason := fence.ReasonStale
		if code == "428" {
			reason = fence.ReasonRequired
		}
		if !slices.Contains(found, reason) {
			found = append(found, reason)
		}
	}
	return found
}
