package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const localhost = "127.0.0.1"

// freePort is a port of the loopback interface on which nobody listens. It lies
// below the range from which outgoing connections get theirs, so that it is
// still free when a program that was stopped comes back to it.
func freePort() (int, error) {
	const first, last = 10000, 15999
	var err error
	for range 100 {
		port := first + rand.IntN(last-first+1)
		var listener net.Listener
		if listener, err = net.Listen("tcp", address(port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("found no free port from %d to %d: %w", first, last, err)
}

// address is a port of the loopback interface as host:port.
func address(port int) string { return net.JoinHostPort(localhost, strconv.Itoa(port)) }
