package blackhole

import (
	"testing"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

func TestMain(m *testing.M) { suite.Main(m, cluster.Options{}) }
