package api

import (
	"net"
	"sync"
)

// quota is a listener that keeps no more than so many connections of one address open. One beyond is closed at once: whoever holds too many
// must not keep others out.
type quota struct {
	net.Listener

	most    int
	metrics *metrics

	mu   sync.Mutex
	open map[string]int // guarded by mu; connections by address
}

func newQuota(l net.Listener, most int, m *metrics) *quota {
	return &quota{Listener: l, most: most, metrics: m, open: map[string]int{}}
}

// Accept gives the next connection within the bound.
func (q *quota) Accept() (net.Conn, error) {
	for {
		conn, err := q.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := hostOf(conn.RemoteAddr())
		if q.take(address) {
			return &heldConn{Conn: conn, release: sync.OnceFunc(func() { q.release(address) })}, nil
		}
		q.metrics.refused.Inc()
		_ = conn.Close()
	}
}

func (q *quota) take(address string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[address] >= q.most {
		return false
	}
	q.open[address]++
	q.metrics.connections.Inc()
	return true
}

func (q *quota) release(address string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.metrics.connections.Dec()
	if q.open[address]--; q.open[address] == 0 {
		delete(q.open, address)
	}
}

// hostOf is an address without its port.
func hostOf(address net.Addr) string {
	if host, _, err := net.SplitHostPort(address.String()); err == nil {
		return host
	}
	return address.String()
}

// heldConn counts until it is closed.
type heldConn struct {
	net.Conn

	release func()
}

// Close ends the connection and gives its place free.
func (c *heldConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
