package load

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the clients of these tests, not the manager
	suite.Main(m, cluster.Options{})
}
