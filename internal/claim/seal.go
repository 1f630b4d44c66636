package claim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

// seal writes the token to the object, with no other change, so that the identity
// can prove it in the write that follows. The revision that the write expects is
// the seal's precondition; the write then expects the one that the seal made. It
// returns the response to a seal that failed, nil after one that did not.
func (w *write) seal() (*http.Response, error) {
	w.sealable, w.sealFirst, w.sealed = false, false, true
	expected := ""
	if w.doc != nil && w.way != stamped { // a stamped write says itself what it expects
		expected = w.doc.resourceVersion()
	}
	req, err := w.sealRequest(expected)
	if err != nil {
		return nil, err
	}
	resp, err := w.next.RoundTrip(req)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		return resp, err
	}
	body, err := readAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("claim: the answer to the seal of %s: %w", req.URL.Path, err)
	}
	if expected == "" {
		return nil, nil
	}
	var sealed metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &sealed); err != nil {
		return nil, fmt.Errorf("claim: the answer to the seal of %s: %w", req.URL.Path, err)
	}
	w.body, err = w.doc.at(sealed.ResourceVersion)
	return nil, err
}

// sealRequest is the request of a seal: a merge patch of the main resource, by the
// same user and the same field manager as the write.
func (w *write) sealRequest(expected string) (*http.Request, error) {
	metadata := map[string]any{"annotations": map[string]string{v1alpha1.AnnotationToken: w.claim.Token.String()}}
	if expected != "" {
		metadata["resourceVersion"] = expected
	}
	body, err := encode(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	req := withBody(w.req, body)
	req.Method = http.MethodPatch
	req.Header.Set("Content-Type", string(types.MergePatchType))
	req.Header.Set("Accept", "application/json")

	query := url.Values{}
	if manager := req.URL.Query().Get("fieldManager"); manager != "" {
		query.Set("fieldManager", manager)
	}
	req.URL.RawQuery = query.Encode()
	if w.status {
		req.URL.Path = strings.TrimSuffix(req.URL.Path, "/"+subresourceStatus)
		req.URL.RawPath = strings.TrimSuffix(req.URL.RawPath, "/"+subresourceStatus)
	}
	return req, nil
}
