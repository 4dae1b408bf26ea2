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
	*places
}

// places are the connections that listeners have let in under the same quotas.
type places struct {
	quotas  Quotas
	metrics *Metrics

	mu   sync.Mutex // guards what follows, and each connection's place
	open int
	from map[string]int // open connections by address
	idle list.List      // of *conn, the one that has been idle for longest in front
}

// NewListener lets no more in through l than the quotas allow.
func NewListener(l net.Listener, quotas Quotas, metrics *Metrics) *Listener {
	return &Listener{Listener: l, places: &places{quotas: quotas, metrics: metrics, from: map[string]int{}}}
}

// Beside is another way in under the same quotas: what comes through either counts for both.
func (l *Listener) Beside(other net.Listener) *Listener {
	return &Listener{Listener: other, places: l.places}
}

// Accept gives the next connection within the quotas. It counts as idle until SetIdle says otherwise.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, places: l.places, address: hostOf(raw.RemoteAddr())}
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
func (p *places) SetIdle(nc net.Conn, idle bool) {
	if around, ok := nc.(interface{ NetConn() net.Conn }); ok { // a *tls.Conn
		nc = around.NetConn()
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.gone:
	case idle && c.idle == nil:
		c.idle = p.idle.PushBack(c)
	case !idle && c.idle != nil:
		p.idle.Remove(c.idle)
		c.idle = nil
	}
}

// take finds a place for a connection; for that, another one may have to go.
func (p *places) take(c *conn) (evicted *conn, taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.from[c.address] >= p.quotas.of(c.address) {
		return nil, false
	}
	if p.open >= p.quotas.Total {
		if p.idle.Len() == 0 {
			return nil, false
		}
		evicted = p.idle.Front().Value.(*conn) //nolint:errcheck,forcetypeassert // nothing else is in the list
		p.leaveLocked(evicted)
	}
	p.open++
	p.from[c.address]++
	c.idle = p.idle.PushBack(c)
	p.metrics.connections.Set(float64(p.open))
	return evicted, true
}

// leave gives a connection's place free, if it has not lost it.
func (p *places) leave(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.gone {
		p.leaveLocked(c)
		p.metrics.connections.Set(float64(p.open))
	}
}

func (p *places) leaveLocked(c *conn) {
	c.gone = true
	if c.idle != nil {
		p.idle.Remove(c.idle)
		c.idle = nil
	}
	p.open--
	if p.from[c.address]--; p.from[c.address] == 0 {
		delete(p.from, c.address)
	}
}

// conn has a place among its listeners' connections until it is closed.
type conn struct {
	net.Conn

	places  *places
	address string
	idle    *list.Element // its place in the list; nil: it is not idle
	gone    bool          // it has no place any more
}

// Close ends the connection and gives its place free.
func (c *conn) Close() error {
	defer c.places.leave(c)
	return c.Conn.Close()
}

// hostOf is an address without its port.
func hostOf(address net.Addr) string {
	if host, _, err := net.SplitHostPort(address.String()); err == nil {
		return host
	}
	return address.String()
}
