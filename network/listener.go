package network

import (
	"container/list"
	"net"
	"sync"
)

// Quotas are how many connections may be open at once.
type Quotas struct {
	PerAddress int            // of one address, without its port
	Overrides  map[string]int // in place of it, by address
	Total      int            // of all addresses together
}

// of is the quota of an address.
func (q Quotas) of(address string) int {
	if n, ok := q.Overrides[address]; ok {
		return n
	}
	return q.PerAddress
}

// Listener keeps the connections that it accepts within quotas. One beyond is closed at once: whoever holds too many must not keep others out.
type Listener struct {
	net.Listener

	quotas  Quotas
	metrics *Metrics

	mu   sync.Mutex // guards what follows, and each connection's place
	open int
	from map[string]int // open connections by address
	idle list.List      // of *conn, the one that has been idle for longest in front
}

// NewListener lets no more in through l than the quotas allow.
func NewListener(l net.Listener, quotas Quotas, metrics *Metrics) *Listener {
	return &Listener{Listener: l, quotas: quotas, metrics: metrics, from: map[string]int{}}
}

// Accept gives the next connection within the quotas. It counts as idle until SetIdle says otherwise.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, listener: l, address: hostOf(raw.RemoteAddr())}
		evicted, taken := l.take(c)
		if evicted != nil {
			l.metrics.evicted.Inc()
			_ = evicted.Conn.Close()
		}
		if taken {
			return c, nil
		}
		l.metrics.refused.Inc()
		_ = raw.Close()
	}
}

// SetIdle says whether a connection that Accept gave, or one around it, has nothing to do: when there are too many, the one that has been idle for
// longest is closed.
func (l *Listener) SetIdle(nc net.Conn, idle bool) {
	if around, ok := nc.(interface{ NetConn() net.Conn }); ok { // a *tls.Conn
		nc = around.NetConn()
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c.gone:
	case idle && c.idle == nil:
		c.idle = l.idle.PushBack(c)
	case !idle && c.idle != nil:
		l.idle.Remove(c.idle)
		c.idle = nil
	}
}

// take finds a place for a connection; for that, another one may have to go.
func (l *Listener) take(c *conn) (evicted *conn, taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from[c.address] >= l.quotas.of(c.address) {
		return nil, false
	}
	if l.open >= l.quotas.Total {
		if l.idle.Len() == 0 {
			return nil, false
		}
		evicted = l.idle.Front().Value.(*conn) //nolint:errcheck,forcetypeassert // nothing else is in the list
		l.leaveLocked(evicted)
	}
	l.open++
	l.from[c.address]++
	c.idle = l.idle.PushBack(c)
	l.metrics.connections.Set(float64(l.open))
	return evicted, true
}

// leave gives a connection's place free, if it has not lost it.
func (l *Listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.gone {
		l.leaveLocked(c)
		l.metrics.connections.Set(float64(l.open))
	}
}

func (l *Listener) leaveLocked(c *conn) {
	c.gone = true
	if c.idle != nil {
		l.idle.Remove(c.idle)
		c.idle = nil
	}
	l.open--
	if l.from[c.address]--; l.from[c.address] == 0 {
		delete(l.from, c.address)
	}
}

// conn has a place among its listener's connections until it is closed.
type conn struct {
	net.Conn

	listener *Listener
	address  string
	idle     *list.Element // its place in the list; nil: it is not idle
	gone     bool          // it has no place any more
}

// Close ends the connection and gives its place free.
func (c *conn) Close() error {
	defer c.listener.leave(c)
	return c.Conn.Close()
}

// hostOf is an address without its port.
func hostOf(address net.Addr) string {
	if host, _, err := net.SplitHostPort(address.String()); err == nil {
		return host
	}
	return address.String()
}
