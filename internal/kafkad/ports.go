package kafkad

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// ListenFree listens on a free loopback port below the range from which the kernel serves outgoing connections and port 0.
// A server that was killed can therefore return to its port: nothing but another call of this function would take it meanwhile.
func ListenFree() (net.Listener, error) {
	const low, high = 15000, 32000
	var errs error
	for range 50 {
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", Loopback(port)) //nolint:noctx // a listen on loopback does not wait
		if err == nil {
			return l, nil
		}
		errs = errors.Join(errs, err)
	}
	return nil, fmt.Errorf("find free port: %w", errs)
}

// FreePorts returns n different ports that were free a moment ago.
func FreePorts(n int) ([]int, error) {
	held := make([]net.Listener, 0, n) // until all are found, so that they differ
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	ports := make([]int, 0, n)
	for range n {
		l, err := ListenFree()
		if err != nil {
			return nil, err
		}
		held = append(held, l)
		ports = append(ports, PortOf(l.Addr()))
	}
	return ports, nil
}

// PortOf is the port of a TCP address.
func PortOf(a net.Addr) int {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

// Loopback is the address of a port on this machine.
func Loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
