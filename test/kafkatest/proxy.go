package kafkatest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// inFlight is how many chunks of up to 64 KiB a proxied connection holds in each direction: so many that a delay does not become
// a limit of throughput.
const inFlight = 1 << 13

// Proxy forwards TCP connections to one address and misbehaves on demand. It changes how bytes travel, never the bytes.
// All methods may be called at any time from any goroutine.
type Proxy struct {
	target string
	addr   string

	wg    sync.WaitGroup
	mu    sync.Mutex
	ln    net.Listener       // guarded by mu; nil while refusing and after Close
	links map[*link]struct{} // guarded by mu
	delay time.Duration      // guarded by mu
	open  [2]chan struct{}   // guarded by mu; by direction; closed while bytes flow
	ended bool               // guarded by mu

	newest map[int16]int16 // guarded by mu; see LimitVersions
}

// Directions of a proxied connection.
const (
	toServer = iota
	toClient
)

// NewProxy starts a proxy to target (host:port) on a free loopback port. Close ends it.
func NewProxy(target string) (*Proxy, error) {
	ln, err := kafkad.ListenFree()
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, addr: ln.Addr().String(), links: map[*link]struct{}{}}
	for i := range p.open {
		p.open[i] = make(chan struct{})
		close(p.open[i])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serveLocked(ln)
	return p, nil
}

// Addr is the address the proxy listens on; it stays the same for the proxy's life.
func (p *Proxy) Addr() string { return p.addr }

// SetDelay makes every byte that is read from now on arrive that much later, in each direction: a round trip takes twice as long.
// Setting up a connection is not delayed.
func (p *Proxy) SetDelay(oneWay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = oneWay
}

// Cut resets all connections; bytes in flight are lost. New connections are served.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Blackhole lets nothing through any more in either direction, without closing anything: connections stay, new ones are accepted,
// and what is sent waits for Heal.
func (p *Proxy) Blackhole() { p.hold(toServer, toClient) }

// HoldAnswers lets nothing through to clients any more, but all of theirs to the server: requests are carried out and nobody learns of it
// until Heal.
func (p *Proxy) HoldAnswers() { p.hold(toClient) }

func (p *Proxy) hold(directions ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range directions {
		if closed(p.open[d]) {
			p.open[d] = make(chan struct{})
		}
	}
}

// Refuse cuts all connections and has the kernel refuse new ones, as if no server ran.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	if p.ln != nil {
		_ = p.ln.Close() // a listener that can't be closed is closed
		p.ln = nil
	}
	p.mu.Unlock()
	p.Cut()
}

// Heal ends Blackhole, HoldAnswers and Refuse. The delay stays as it is.
func (p *Proxy) Heal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, open := range p.open {
		if !closed(open) {
			close(open)
		}
	}
	if p.ln != nil || p.ended {
		return nil
	}
	ln, err := net.Listen("tcp", p.addr) // a listen on loopback does not wait
	if err != nil {
		return fmt.Errorf("listen again: %w", err)
	}
	p.serveLocked(ln)
	return nil
}

// Close ends the proxy and all its connections, and waits for its goroutines.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.Refuse()
	p.wg.Wait()
	return nil
}

func (p *Proxy) serveLocked(ln net.Listener) {
	p.ln = ln
	p.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				p.wg.Go(func() { p.connect(conn) })
			}
		}
	})
}

// connect joins an accepted connection with a new one to the target and pumps until both ended.
func (p *Proxy) connect(client net.Conn) {
	l := &link{a: client, cut: make(chan struct{})}
	if !p.add(l) {
		l.reset()
		return
	}
	defer p.remove(l)
	server, err := net.DialTimeout("tcp", p.target, 5*time.Second) // bounded by its time-out
	if err != nil {
		l.reset()
		return
	}
	if !l.join(server) { // cut while dialing
		return
	}
	fromClient, fromServer := p.limited(client, server)
	var pumps sync.WaitGroup
	pumps.Go(func() { p.pump(l, toServer, server, fromClient) })
	pumps.Go(func() { p.pump(l, toClient, client, fromServer) })
	pumps.Wait()
	l.end(false)
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ln == nil {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// chunk is bytes and when they are to arrive.
type chunk struct {
	due   time.Time
	bytes []byte
}

// pump carries bytes from src to dst until src ends, then ends dst's incoming side; a failure on either side cuts the link.
func (p *Proxy) pump(l *link, direction int, dst, src net.Conn) {
	queue := make(chan chunk, inFlight)
	var reader sync.WaitGroup
	defer reader.Wait()
	reader.Go(func() {
		defer close(queue)
		p.read(l, src, queue)
	})
	for c := range queue {
		if !p.arrive(l, direction, c.due) {
			return
		}
		if _, err := dst.Write(c.bytes); err != nil {
			l.reset()
			return
		}
	}
	if tcp, ok := dst.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // the other side may be gone already
	}
}

// read fills the queue until src ends or the link is cut.
func (p *Proxy) read(l *link, src net.Conn, queue chan<- chunk) {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			p.mu.Lock()
			due := time.Now().Add(p.delay)
			p.mu.Unlock()
			select {
			case queue <- chunk{due, append([]byte(nil), buf[:n]...)}:
			case <-l.cut:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// arrive waits until a chunk is due and bytes flow; false if the link was cut meanwhile.
func (p *Proxy) arrive(l *link, direction int, due time.Time) bool {
	if wait := time.Until(due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.cut:
			return false
		}
	}
	p.mu.Lock()
	open := p.open[direction]
	p.mu.Unlock()
	select {
	case <-l.cut: // first, since both may be ready and a cut link delivers nothing
		return false
	default:
	}
	select {
	case <-open:
		return true
	case <-l.cut:
		return false
	}
}

// link is one connection from a client and, once dialed, the one to the target.
type link struct {
	cut chan struct{} // closed by reset

	mu   sync.Mutex
	a, b net.Conn // guarded by mu
}

// join adds the connection to the target; false, and closed, if the link was reset meanwhile.
func (l *link) join(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if closed(l.cut) {
		_ = server.Close() // unused
		return false
	}
	l.b = server
	return true
}

// reset closes both connections at once: what is in flight is lost, and a peer that still reads gets a reset instead of an end.
func (l *link) reset() { l.end(true) }

// end closes both connections; unless abrupt, the kernel still delivers what was written. Only the first call does anything.
func (l *link) end(abrupt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if closed(l.cut) {
		return
	}
	close(l.cut)
	for _, c := range []net.Conn{l.a, l.b} {
		if tcp, ok := c.(*net.TCPConn); ok {
			if abrupt {
				_ = tcp.SetLinger(0) // best effort
			}
			_ = tcp.Close() // best effort
		}
	}
}
