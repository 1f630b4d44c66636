package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fencedlease/fencedlease/test/cluster"
)

// plane is the control plane of all tests; auditLog has the requests of the service
// accounts of the release.
var (
	plane    *cluster.Cluster
	auditLog string
)

// policy has a line for each request of the release's service accounts, when it is
// answered, or when a watch begins.
const policy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [system:serviceaccount:` + namespace + `:fencedlease, system:serviceaccount:` + namespace + `:fencedlease-check]
- level: None
`

func TestMain(m *testing.M) {
	within := run
	if os.Getenv(insideVariable) == "" {
		within = func(*testing.M) (int, error) { return inside() }
	}
	code, err := within(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	log.SetLogger(logr.Discard()) // what matters is in errors, and in the manager's log
	if err := connect(); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "fencedlease-chart-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	auditLog = filepath.Join(dir, "audit.log")
	policyFile := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policyFile, []byte(policy), 0o600); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	plane, err = cluster.Start(ctx, cluster.Options{APIServerArgs: []string{
		"--audit-policy-file=" + policyFile,
		"--audit-log-path=" + auditLog,
		// The webhooks are called as the chart says, at their Service: there is no
		// kube-proxy, so the API server goes to the address behind it by itself.
		"--enable-aggregator-routing=true",
		"--advertise-address=" + serviceAddress, // the namespace has no route by which to find one
	}})
	if err != nil {
		return 1, fmt.Errorf("the control plane did not start: %w", err)
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	return m.Run(), nil
}
