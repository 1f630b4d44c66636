package httpfence

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/fencedlease/fencedlease/fence"
)

const (
	// Header is the header that presents a token.
	Header = "Fencing-Token"

	// problemType is the media type of RFC 9457.
	problemType = "application/problem+json"

	// typePrefix makes a URI (RFC 4151) of a reason. There is nothing behind it.
	typePrefix = "tag:fencedlease.io,2026:"
)

// Problem is a refusal: a body of problem details (RFC 9457).
type Problem struct {
	// Type is a URI that stands for the reason.
	Type string `json:"type"`

	// Title is the same for all refusals of a type.
	Title string `json:"title"`

	// Status is the code of the answer.
	Status int `json:"status"`

	// Detail says what happened, and what to do.
	Detail string `json:"detail"`

	// Reason is that of the API server's guard for the same case.
	Reason fence.Reason `json:"reason"`

	// Resource is what the request wants to work on, as far as it is known.
	Resource string `json:"resource,omitempty"`

	// PresentedToken is the one that the request presents, if it is well-formed.
	PresentedToken fence.Token `json:"presentedToken,omitempty"`

	// MarkToken is the highest that has worked on the resource, if that is the reason.
	MarkToken fence.Token `json:"markToken,omitempty"`
}

// String is the problem for people.
func (p *Problem) String() string { return fmt.Sprintf("HTTP %d %s: %s", p.Status, p.Reason, p.Detail) }

// maxProblem bounds how much of an answer is read, in bytes.
const maxProblem = 64 << 10

// ProblemOf reads the refusal of a [Guard] from an answer, and returns nil if it is none.
// It consumes the body only of an answer with the media type of problem details.
func ProblemOf(response *http.Response) *Problem {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")) // empty if it is none
	if media != problemType {
		return nil
	}
	var p Problem
	_ = json.NewDecoder(io.LimitReader(response.Body, maxProblem)).Decode(&p) // no reason if it is none
	if !p.Reason.Known() {
		return nil
	}
	p.Status = response.StatusCode // section 3.1.2: the member is advisory
	return &p
}

// titles are what people read first.
var titles = map[fence.Reason]string{
	fence.ReasonStale:       "The fencing token is stale",
	fence.ReasonInvalid:     "The fencing token is malformed",
	fence.ReasonRequired:    "A fencing token is required",
	fence.ReasonUnavailable: "The fence is unavailable",
}

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	p.Type, p.Title = typePrefix+string(p.Reason), titles[p.Reason]
	body, err := json.Marshal(p)
	if err != nil { // there is nothing in it that could not be
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", problemType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // who has gone does not read it
}
