package claim

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// within sends a request that is cut off, wherever it is, when its claim is over;
// the error then has the reason. The body of the response is cut off as well.
func within(req *http.Request, over context.Context, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if over == nil {
		return send(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(over, func() { cancel(context.Cause(over)) })
	done := func() {
		stop()
		cancel(context.Canceled)
	}
	resp, err := send(req.WithContext(ctx))
	if err != nil {
		done()
		if over.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(over), err)
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
