package claim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

const (
	// maxBody bounds what is kept of a write and of an object, in bytes. The API
	// server takes 3 MiB.
	maxBody = 4 << 20

	// maxStatus bounds what is read of a refusal, in bytes.
	maxStatus = 1 << 20
)

// readBody reads and closes the body of a request; nil if it has none.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := readAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("claim: the body of %s %s: %w", req.Method, req.URL.Path, err)
	}
	return body, nil
}

// readAll reads and closes a body. It fails for one that is larger than maxBody.
func readAll(body io.ReadCloser) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if closeErr := body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	if len(content) > maxBody {
		return nil, fmt.Errorf("it is larger than %d bytes, which no API server takes", maxBody)
	}
	return content, nil
}

// withBody is a copy of a request with another body.
func withBody(req *http.Request, body []byte) *http.Request {
	changed := req.Clone(req.Context())
	changed.ContentLength = int64(len(body))
	changed.TransferEncoding = nil
	changed.GetBody = func() (io.ReadCloser, error) { return bodyOf(body), nil }
	changed.Body = bodyOf(body)
	return changed
}

func bodyOf(content []byte) io.ReadCloser {
	if len(content) == 0 {
		return http.NoBody // a DELETE without options has no body at all
	}
	return io.NopCloser(bytes.NewReader(content))
}

// discard closes a body that nobody is going to read; there may be none. That it
// cannot be closed changes nothing for its reader.
func discard(body io.Closer) {
	if body != nil {
		_ = body.Close()
	}
}

// statusIn is the Status in a response that tells of a failure, nil if there is
// none. The body stays readable from its beginning.
func statusIn(resp *http.Response) *metav1.Status {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode < http.StatusBadRequest || err != nil || media != "application/json" {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	resp.Body = replayed{io.MultiReader(bytes.NewReader(content), resp.Body), resp.Body}
	if err != nil {
		return nil // the caller meets it too
	}
	var status metav1.Status
	if err := json.Unmarshal(content, &status); err != nil {
		return nil
	}
	return &status
}

// isContested says whether an apply was refused for nothing but our annotations,
// which another field manager has.
func isContested(status *metav1.Status) bool {
	if status.Reason != metav1.StatusReasonConflict || status.Details == nil || len(status.Details.Causes) == 0 {
		return false
	}
	for _, cause := range status.Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict ||
			cause.Field != ".metadata.annotations."+v1alpha1.AnnotationToken && cause.Field != ".metadata.annotations."+v1alpha1.AnnotationWrite {
			return false
		}
	}
	return true
}

// replayed is a body of which a part was read before.
type replayed struct {
	io.Reader
	io.Closer
}
