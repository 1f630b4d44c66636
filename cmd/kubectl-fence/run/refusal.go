package run

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// isRefusal says whether the API server said no, and would say so again.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := int(status.Status().Code)
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError &&
		code != http.StatusConflict && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}

// isAnswer says whether an error is an answer of the API server.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}
