package kafkatest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// listenFree listens on a free loopback port below the range from which the kernel serves outgoing connections and port 0.
// A server that was killed can therefore return to its port: nothing but another call of this function would take it meanwhile.
func listenFree() (net.Listener, error) {
	const low, high = 15000, 32000
	var errs error
	for range 50 {
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", loopback(port)) // a listen on loopback does not wait
		if err == nil {
			return l, nil
		}
		errs = errors.Join(errs, err)
	}
	return nil, fmt.Errorf("find free port: %w", errs)
}

// freePorts returns n different ports that were free a moment ago.
func freePorts(n int) ([]int, error) {
	held := make([]net.Listener, 0, n) // until all are found, so that they differ
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	ports := make([]int, 0, n)
	for range n {
		l, err := listenFree()
		if err != nil {
			return nil, err
		}
		held = append(held, l)
		ports = append(ports, portOf(l.Addr()))
	}
	return ports, nil
}

func portOf(a net.Addr) int {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
