package leadership

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/suite"
)

// tests is how many of them run at the same time. Most of them wait most of the
// time: for a Lease to expire.
const tests = "8"

// TestMain runs the tests or, in a process that a test has started, a worker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		if err := work(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", tests); err != nil {
		panic(err)
	}
	suite.Main(m, cluster.Options{})
}
