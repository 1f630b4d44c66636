package protocol

import (
	"testing"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// Coordinated leader election is off in Kubernetes unless asked for; rule M3
// speaks of it.
func TestMain(m *testing.M) {
	suite.Main(m, cluster.Options{APIServerArgs: []string{
		"--feature-gates=CoordinatedLeaderElection=true",
		"--runtime-config=coordination.k8s.io/v1beta1=true",
	}})
}
