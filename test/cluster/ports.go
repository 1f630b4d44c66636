package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

const localhost = "127.0.0.1"

// Ports lie below the range from which outgoing connections get theirs, so that
// one is still free when a program that was stopped comes back to it.
const firstPort, ports = 10000, 6000

// portsTried makes every port a new one, bound yet or not. Other processes begin
// elsewhere.
var portsTried atomic.Int64

func init() { portsTried.Store(int64(os.Getpid()) * 97) }

// FreePort is a port of the loopback interface on which nobody listens, and which no
// outgoing connection is given.
func FreePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	var err error
	for range 100 {
		port := firstPort + int(portsTried.Add(1)%ports)
		var listener net.Listener
		if listener, err = config.Listen(ctx, "tcp", address(port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("found no free port: %w", err)
}

// address is a port of the loopback interface as host:port.
func address(port int) string { return net.JoinHostPort(localhost, strconv.Itoa(port)) }
