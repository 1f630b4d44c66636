package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ipTimeout is the deadline of a call of ip.
const ipTimeout = 10 * time.Second

// bridgeAddress is the link-layer address of the bridge, a locally administered one.
const bridgeAddress = "0a:58:0a:4e:00:01"

// network is the bridge, and the addresses behind it.
type network struct {
	bridge  string
	address netip.Prefix
	spawner *spawner

	mu   sync.Mutex
	used map[netip.Addr]bool
	last netip.Addr
}

// newNetwork makes the bridge, in the place of one that is left from another time.
func newNetwork(ctx context.Context, bridge string, address netip.Prefix, spawner *spawner) (*network, error) {
	n := &network{bridge: bridge, address: address, spawner: spawner, used: map[netip.Addr]bool{}, last: address.Addr()}
	if exists(bridge) {
		if err := n.close(ctx); err != nil {
			return nil, err
		}
	}
	err := n.ip(ctx, nil,
		"link set dev lo up",
		// With an address of its own: else it takes the smallest of its links', another one
		// whenever Pods come and go, and those that are there would not find their gateway
		// for a minute.
		"link add "+bridge+" address "+bridgeAddress+" type bridge forward_delay 0",
		"address add "+address.String()+" dev "+bridge,
		"link set dev "+bridge+" up")
	return n, err
}

func (n *network) close(ctx context.Context) error {
	return n.ip(ctx, nil, "link delete dev "+n.bridge)
}

// sandbox is the network of a Pod.
type sandbox struct {
	network *network
	netns   *os.File
	address netip.Addr
	link    string // the end on the bridge
}

// connect makes the network of a Pod.
func (n *network) connect(ctx context.Context, p *corev1.Pod) (*sandbox, error) {
	s := &sandbox{network: n, link: "veth" + strings.ReplaceAll(string(p.UID), "-", "")[:10]}
	var err error
	if s.netns, err = n.spawner.makeNamespace(); err != nil {
		return nil, err
	}
	if err := s.join(ctx, fullName(p)); err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// join gives the namespace an address on the bridge.
func (s *sandbox) join(ctx context.Context, name string) (err error) {
	n := s.network
	if s.address, err = n.take(); err != nil {
		return err
	}
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.netns.Fd())
	err = n.ip(ctx, nil,
		"link add "+s.link+" type veth peer name eth0 netns "+path,
		"link set dev "+s.link+" master "+n.bridge+" alias "+name+" up")
	if err != nil {
		return err
	}
	return n.ip(ctx, s.netns,
		"link set dev lo up",
		fmt.Sprintf("address add %s/%d dev eth0", s.address, n.address.Bits()),
		"link set dev eth0 up",
		"route add default via "+n.address.Addr().String())
}

// close removes it. The namespace goes with its last process.
func (s *sandbox) close(ctx context.Context) error {
	s.network.mu.Lock()
	delete(s.network.used, s.address)
	s.network.mu.Unlock()
	var err error
	if exists(s.link) { // before its other end is gone with the namespace
		err = s.network.ip(ctx, nil, "link delete dev "+s.link)
	}
	return errors.Join(err, s.netns.Close())
}

// exists says whether there is an interface. /sys would not: it shows the namespace of
// whoever mounted it.
func exists(link string) bool {
	_, err := net.InterfaceByName(link)
	return err == nil
}

// take takes an address of the subnet. Those given back rest as long as possible, so
// that nobody mistakes one Pod for another.
func (n *network) take() (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range 1 << (32 - n.address.Bits()) {
		n.last = n.last.Next()
		if !n.address.Contains(n.last.Next()) { // the last one is for broadcasts
			n.last = n.address.Masked().Addr().Next()
		}
		if n.last != n.address.Addr() && !n.used[n.last] {
			n.used[n.last] = true
			return n.last, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no address of %s is free: choose a larger --address", n.address)
}

// ip runs commands of ip in a network namespace, until one fails.
func (n *network) ip(ctx context.Context, netns *os.File, commands ...string) error {
	ctx, cancel := context.WithTimeout(ctx, ipTimeout)
	defer cancel()
	var output bytes.Buffer
	command := exec.CommandContext(ctx, "ip", "-batch", "-")
	command.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	command.Stdout, command.Stderr = &output, &output
	err := n.spawner.start(command, netns)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(commands, "; "), err, output.String())
	}
	return nil
}
