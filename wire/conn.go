package wire

import (
	"bufio"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/internal/slab"
)

// Conn is one connection to one broker. Its methods may be called from any goroutine but from a done callback (see Produce), with the
// exceptions that are named there.
//
// Lock order: sem before mu. Nothing is written without sem, nothing blocks while mu is held.
type Conn struct {
	broker   int32
	addr     string
	cfg      Config
	format   *kmsg.RequestFormatter
	versions versions
	nc       net.Conn
	in       *bufio.Reader
	answer   []byte // scratch of the reading goroutine

	sem   chan struct{} // held by whoever writes
	out   writer        // guarded by sem
	corr  int32         // guarded by sem
	login login         // guarded by sem

	mu             sync.Mutex
	cond           *sync.Cond // a write has returned, a request was answered, or the connection failed
	waiting        queue
	throttledUntil time.Time
	sessions       map[int32]int16 // fetch session id → version that the session was opened with
	err            error

	failed chan struct{} // closed at the first failure
	done   chan struct{} // closed when the reading goroutine is gone
}

// waiter is one request that has no answer yet.
type waiter struct {
	next    *waiter
	corr    int32
	key     int16
	size    int64
	timeout time.Duration
	resp    kmsg.Response
	written bool // guarded by Conn.mu

	produced func(*kmsg.ProduceResponse, error) // of a Produce
	ready    chan struct{}                      // of all others: closed when err and resp are final
	err      error

	pool      *slab.Pool // of a Fetch
	reserved  int64
	body      *slab.Slab
	abandoned bool // nobody waits any more; guarded by Conn.mu
	taken     bool // the reservation has gone into body; guarded by Conn.mu
	finished  bool // err, resp and body are final; guarded by Conn.mu
}

// queue is the unanswered requests, oldest first.
type queue struct {
	head, tail *waiter
	requests   int
	bytes      int64
	since      time.Time // when head became the oldest
}

func (q *queue) push(w *waiter) {
	q.requests++
	q.bytes += w.size
	if q.tail != nil {
		q.tail.next = w
	} else {
		q.head = w
		q.since = time.Now()
	}
	q.tail = w
}

func (q *queue) pop() {
	w := q.head
	q.head, w.next = w.next, nil
	if q.head == nil {
		q.tail = nil
	}
	q.requests--
	q.bytes -= w.size
	q.since = time.Now()
}

// login is how a connection's session is renewed.
type login struct {
	renew func() error // nil without SASL
	due   time.Time
}

// newConn starts the goroutine that reads answers. The connection is not negotiated yet.
func newConn(nc net.Conn, broker int32, addr, clientID string, cfg Config) *Conn {
	c := &Conn{
		broker: broker, addr: addr, cfg: cfg, nc: nc,
		format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)),
		in:     bufio.NewReaderSize(nc, readBufferBytes),
		sem:    make(chan struct{}, 1),
		failed: make(chan struct{}),
		done:   make(chan struct{}),
	}
	c.cond = sync.NewCond(&c.mu)
	c.out = newWriter(nc, clientID)
	go c.read() // owned by the connection: Close waits for done
	return c
}

// Broker is the id of the broker at the other end, -1 if the connection was made to a bootstrap address.
func (c *Conn) Broker() int32 { return c.broker }

// MaxVersion is the newest version of a request that both ends speak, -1 when there is none.
func (c *Conn) MaxVersion(key int16) int16 { return c.versions.max(key) }

// OldestWait is for how long the oldest unanswered request has been the oldest, 0 when everything is answered. What the broker throttles us for
// does not count: it does not read before then (KIP-219).
func (c *Conn) OldestWait() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting.head == nil {
		return 0
	}
	from := c.waiting.since
	if c.throttledUntil.After(from) {
		from = c.throttledUntil
	}
	return max(time.Since(from), 1)
}

// Unanswered counts requests that have no answer yet, and the bytes of them.
func (c *Conn) Unanswered() (requests int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting.requests, c.waiting.bytes
}

// Throttled is for how long the broker asked us to send nothing more (KIP-219), counted from now.
func (c *Conn) Throttled() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(time.Until(c.throttledUntil), 0)
}

// Done is closed when the connection has ended and every request on it was told so.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended, nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection: whatever is unanswered fails, and its done callbacks have returned when Close does. So it must not be called
// from one of them; Cut may.
func (c *Conn) Close() {
	c.Cut()
	<-c.done
}

// Cut is Close without waiting.
func (c *Conn) Cut() { c.fail("close connection", ErrClosed) }

// fail keeps the first failure and closes the socket, which wakes the reader and a writer. The reader tells everyone.
func (c *Conn) fail(op string, err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = &LinkError{Op: op, Broker: c.broker, Addr: c.addr, Err: err}
	close(c.failed)
	c.cond.Broadcast()
	c.mu.Unlock()
	_ = c.nc.Close()
}

// push makes w the youngest unanswered request. It fails when the connection has ended.
func (c *Conn) push(w *waiter) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.waiting.push(w)
	if c.waiting.head == w {
		_ = c.armLocked() // fails on a closed socket only, which the write will find too: w is queued
	}
	return nil
}

// pop removes the oldest request once its write has returned: before that, its memory must not go back to its owner.
func (c *Conn) pop() *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiting.head
	if w == nil {
		return nil
	}
	if !w.written && c.err == nil {
		// The answer overtook the end of the write. A broker that has read everything lets it end at once; anything else is
		// out of step, and nobody reads while we wait here, so the write must end in its own time.
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.cfg.WriteGrace))
	}
	graced := !w.written
	for !w.written {
		c.cond.Wait()
	}
	if graced {
		_ = c.nc.SetWriteDeadline(time.Time{})
	}
	c.waiting.pop()
	c.cond.Broadcast()
	return w
}

// armLocked sets the moment at which the oldest request's answer is late. The same moment ends a write that the broker does not read: each
// unanswered request is the oldest at some time.
func (c *Conn) armLocked() error {
	if c.waiting.head == nil {
		return c.nc.SetReadDeadline(time.Time{})
	}
	from := time.Now()
	if c.throttledUntil.After(from) {
		from = c.throttledUntil // the broker does not read before then (KIP-219)
	}
	return c.nc.SetReadDeadline(from.Add(c.waiting.head.timeout))
}

// arm is armLocked for the reader, after it has told a request's owner.
func (c *Conn) arm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.armLocked()
}
