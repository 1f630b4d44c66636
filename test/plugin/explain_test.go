package plugin

import (
	"encoding/json"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestExplain: what the API server and kubectl really say is understood.
func TestExplain(t *testing.T) {
	t.Parallel()
	w, ann := secondTerm(t)
	err := w.User("somebody").Modify("state", suite.Token("1"), suite.Annotation("fencedlease.io/write", "1/x"), suite.Balance("1"))
	suite.Refused(t, err, 412, fence.ReasonStale)
	var failure apierrors.APIStatus
	if !errors.As(err, &failure) {
		t.Fatal(err)
	}
	status, err := json.Marshal(failure.Status())
	w.Must(err)
	told := []string{
		"FencingTokenStale (HTTP 412)", "the write presented token 1", "the object was last written with token 1", "the current token is 2",
		`the holder of the Lease is "second"`, "the token was minted to pod/", "The server said: ", "What to do: You are not the leader",
	}
	ann.kubectl(string(status), "fence", "explain").prints(told...)
	ann.fence("explain", string(status)).prints(told...)
	ann.fence("explain", "-f", ann.file("status.json", "the answer was "+string(status)+"\n")).prints(told...)
	ann.fence("explain", string(status), "-o", "json").prints(`"reason": "FencingTokenStale"`, `"code": 412`, `"presentedToken": 1`, `"markToken": 1`, `"currentToken": 2`, `"holder": "second"`)

	refusal := ann.kubectl("", "patch", "configmap", "state", "-p", "data: {balance: '2'}")
	ann.kubectl(refusal.Stderr, "fence", "explain").prints("FencingTokenStale (HTTP 412)", "What to do: ")
	ann.fence("explain", "FencingTokenRequired").prints("FencingTokenRequired (HTTP 428)", "Present your token").lacks("Stale")
	ann.fence("explain", "server returned HTTP 428 Precondition Required").prints("FencingTokenRequired (HTTP 428)")
	ann.fence("explain").prints("412 FencingTokenStale\n", "428 FencingTokenRequired\n", "503 FenceUnavailable\n", "Do: ")
	ann.fence("explain", "-o", "yaml").prints("- code: 412", "reason: LeaseConflict")
	ann.fence("explain", "all is well").fails("error: this is no refusal by a FencedLease")
}
