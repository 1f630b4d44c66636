package httpfence

import (
	"bytes"
	"maps"
	"net/http"
)

// answer keeps what a handler answers until the work is stored: a client must not be told
// of a success that the commit then takes back.
type answer struct {
	header http.Header
	code   int // 0 until the handler has said it
	sent   http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	// Informational codes come before the answer; they are for the way, and dropped.
	if a.code == 0 && code >= http.StatusOK {
		a.code, a.sent = code, a.header.Clone()
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// send sends the answer, with the headers that were there when its code was said, as a
// server does.
func (a *answer) send(w http.ResponseWriter) {
	a.WriteHeader(http.StatusOK)
	maps.Copy(w.Header(), a.sent)
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body.Bytes()) // who has gone does not read it
}
