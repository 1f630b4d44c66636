package claim

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// within sends a request that is cut off, wherever it is, when its claim is over;
// the error then has the reason. The body of the response is cut off as well.
func within(req *http.Request, term Term, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if term == nil {
		return send(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := term.AfterFunc(func() { cancel(term.Err()) })
	done := func() {
		stop()
		cancel(context.Canceled)
	}
	resp, err := send(req.WithContext(ctx))
	if err != nil {
		done()
		if lost := term.Err(); lost != nil {
			err = fmt.Errorf("%w: %w", lost, err)
		}
		return nil, err
	}
	resp.Body = endedBody{resp.Body, done}
	return resp, nil
}

// endedBody is a body after which nothing waits for the end of the claim.
type endedBody struct {
	io.ReadCloser

	done func()
}

func (b endedBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
