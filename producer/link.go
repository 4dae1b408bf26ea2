package producer

import (
	"context"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// busyRequests is how many unanswered requests keep a near broker busy; below it nothing waits for company.
const busyRequests = 4

// link is one connection to one target broker, made when there is something to send, and everything that is sent over it.
type link struct {
	p      *Producer
	broker int32
	kick   chan struct{} // there is news for the sender
	reads  chan struct{} // a place for each log that may be read at the same time
	later  []*Slot       // scratch of the sender: queued slots that are in the request already

	mu       sync.Mutex // guards what follows; a leaf: nothing is called while it is held but what asks the connection for a figure
	queue    []*Slot    // lanes that have something to send, in turn
	requests []*request // unanswered, oldest first
	bytes    int64      // of them
	flying   int        // slots with unanswered batches
	window   window
	conn     *wire.Conn // nil while there is none
}

func newLink(p *Producer, broker int32) *link {
	return &link{p: p, broker: broker, kick: make(chan struct{}, 1), reads: make(chan struct{}, maxReads)}
}

// push puts a slot, whose queued flag is set, at the end of the queue.
func (l *link) push(s *Slot) {
	l.mu.Lock()
	l.queue = append(l.queue, s)
	l.mu.Unlock()
	l.signal()
}

func (l *link) signal() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

func (l *link) pop() *Slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	s := l.queue[0]
	l.queue[0] = nil
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	return s
}

// run sends until ctx ends. A connection that fails is made anew when there is something to send; whose batches were unanswered, was told.
func (l *link) run(ctx context.Context) {
	for l.waitForWork(ctx) {
		dialing, cancel := context.WithTimeout(ctx, l.p.cfg.RequestTimeout)
		conn, err := l.p.client.Dial(dialing, l.broker)
		cancel()
		if err != nil {
			l.refuse(err)
			continue
		}
		l.setConn(conn)
		uncut := context.AfterFunc(ctx, conn.Cut) // a write that the broker does not read must not outlast us
		l.serve(ctx, conn)
		uncut()
		conn.Close() // waits until everything unanswered was handed back
		l.setConn(nil)
	}
	l.refuse(context.Cause(ctx))
}

func (l *link) setConn(c *wire.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = c
}

// waitForWork returns true when there is a batch to send. Lanes that want to ask first are passed on at once: after a lost connection that is
// all of them, and a connection to a broker that is gone may take long to fail.
func (l *link) waitForWork(ctx context.Context) bool {
	for {
		for s := l.pop(); s != nil && ctx.Err() == nil; s = l.pop() {
			if l.moved(s) {
				continue
			}
			s.queued.Store(false)
			n := s.lane.Next()
			if n < 0 {
				s.toControl()
			}
			if n > 0 {
				s.Wake()
				return true
			}
		}
		select {
		case <-l.kick:
		case <-ctx.Done():
			return false
		}
	}
}

// refuse tells every lane that waits that this broker can't be reached, as an answer to its next batch: it will ask who leads now.
func (l *link) refuse(err error) {
	f := classify(err)
	for s := l.pop(); s != nil; s = l.pop() {
		s.queued.Store(false)
		switch n := s.lane.Next(); {
		case n < 0:
			s.toControl()
		case n > 0:
			if b, all := s.lane.Take(); b != nil {
				s.lane.Answer(all, route.NoOffset, f)
			}
		}
	}
}

// toControl gives the slot to the control loop, which asks what the lane wants to know.
func (s *Slot) toControl() {
	if !s.gone.Load() && !s.queued.Swap(true) {
		s.producer.ask(s)
	}
}

func (l *link) serve(ctx context.Context, conn *wire.Conn) {
	linger := time.NewTimer(time.Hour)
	defer linger.Stop()
	for l.waitToSend(ctx, conn, linger) {
		r := l.build()
		if len(r.items) == 0 {
			l.p.recycle(r)
			continue
		}
		if err := conn.Produce(&r.wire, r.done); err != nil {
			r.answered(nil, err)
			return
		}
	}
}

// waitToSend returns true when a request should be built: there is work and room, and either the pipe is not busy, or every lane that is
// in flight has more, or what there is has waited long enough for company. One batch a request costs almost four times the CPU.
func (l *link) waitToSend(ctx context.Context, conn *wire.Conn, linger *time.Timer) bool {
	lingering := false
	for {
		l.mu.Lock()
		work := len(l.queue) > 0 && (len(l.requests) == 0 || l.roomLocked(time.Now()))
		now := work && (len(l.requests) < busyRequests || len(l.queue) >= l.flying)
		l.mu.Unlock()
		if now {
			return ctx.Err() == nil && conn.Err() == nil
		}
		if work && !lingering {
			linger.Reset(l.p.cfg.Linger)
			lingering = true
		}
		select {
		case <-l.kick:
		case <-linger.C:
			if lingering && work {
				return true
			}
			lingering = false
		case <-conn.Done():
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// roomLocked says whether one more request may be in flight.
func (l *link) roomLocked(now time.Time) bool {
	if l.p.cfg.InFlightBytes > 0 {
		return l.bytes < l.p.cfg.InFlightBytes
	}
	return l.bytes < l.window.limit() && len(l.requests) < l.window.most() && !l.window.stale(now)
}

// build fills a request with the next batch of every lane in the queue, each lane once, up to the size limit.
func (l *link) build() *request {
	r := l.p.request(l)
	number := l.p.builds.Add(1)
	var again *Slot
	for r.size < l.p.cfg.MaxRequestBytes {
		s := l.pop()
		if s == nil {
			break
		}
		if l.moved(s) {
			continue
		}
		if s.build == number { // woken since its batch was taken; a broker refuses two batches of a partition in one request
			l.later = append(l.later, s)
			continue
		}
		s.queued.Store(false)
		n := s.lane.Next()
		if n < 0 {
			s.toControl()
		}
		if n <= 0 {
			continue
		}
		// Two lanes of one target partition take turns. A broker keeps the batches of a request by partition: one of two is dropped, and the
		// answer to the other is there for both. That a lane is alone says nothing of later, so it is counted and looked at here.
		if r.size > 0 && r.size+n > l.p.cfg.MaxRequestBytes || s.company.Load() > 1 && r.has(s.target) {
			again = s
			break
		}
		if b, all := s.lane.Take(); b != nil {
			s.build = number
			r.add(s, b, all)
		} else {
			s.Wake() // it changed its mind, and may want to ask
		}
	}
	l.seal(r, again)
	return r
}

// seal counts the request and lets its lanes stand in line again, the one that did not fit before all others.
func (l *link) seal(r *request, again *Slot) {
	if len(r.items) > 0 {
		r.seal(l.p.cfg)
		l.mu.Lock()
		r.alone = len(l.requests) == 0
		l.requests = append(l.requests, r)
		l.bytes += int64(r.size)
		for i := range r.items {
			s := r.items[i].slot
			if s.flying == 0 {
				l.flying++
			}
			s.flying++
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	if again != nil && !again.queued.Swap(true) {
		l.queue = append([]*Slot{again}, l.queue...)
	}
	l.queue = append(l.queue, l.later...)
	l.mu.Unlock()
	clear(l.later)
	l.later = l.later[:0]
	for i := range r.items {
		r.items[i].slot.Wake()
	}
}

// moved sends a slot, taken from this link's queue, on to the link that serves it now: a private one goes back to its broker's common
// link when nothing of it is unanswered and its last answer came in time.
func (l *link) moved(s *Slot) bool {
	if s.gone.Load() {
		return true
	}
	l.mu.Lock()
	quiet := s.flying == 0
	l.mu.Unlock()
	if quiet && s.prompt.Load() && s.private.CompareAndSwap(true, false) {
		s.link.Store(l.p.link(l.broker))
	}
	if to := s.link.Load(); to != l && to != nil {
		to.push(s)
		return true
	}
	return false
}

// answered takes a request off the link. Requests are answered in order. It comes before the lanes are told: one that has all its answers may
// be given to another link at once. For the same reason no slot of it is prompt before its lane is told: a partition must not leave its own
// link with an answer under way that an answer over the next link could overtake.
func (l *link) answered(r *request, now time.Time, trip time.Duration, ok bool) {
	l.mu.Lock()
	for i, q := range l.requests {
		if q == r {
			l.requests = append(l.requests[:i], l.requests[i+1:]...)
			break
		}
	}
	l.bytes -= int64(r.size)
	for i := range r.items {
		s := r.items[i].slot
		if s.private.Load() {
			s.prompt.Store(false)
		}
		if s.flying--; s.flying == 0 {
			l.flying--
		}
	}
	if ok {
		l.window.answered(now, int64(r.size), trip, r.alone)
	}
	l.mu.Unlock()
	l.signal()
}

// late finds the partitions whose answer holds up others on this connection, for how long so far, and the connection, which the caller must
// cut: they go on over connections of their own, the others over a new one. A link's mutex is not held over the end of a connection: that may
// take long, and lanes wake their links with their own locks held.
func (l *link) late() (slots []*Slot, waited time.Duration, conn *wire.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil || len(l.requests) == 0 {
		return nil, 0, nil
	}
	oldest := l.requests[0]
	waited = l.conn.OldestWait()
	if waited < max(l.p.cfg.Late, 10*l.window.median()) || l.flying <= len(oldest.items) && len(oldest.items) == 1 {
		return nil, waited, nil // or there is nobody else whom it holds up
	}
	for i := range oldest.items {
		s := oldest.items[i].slot
		if !s.private.Swap(true) {
			s.prompt.Store(false)
			slots = append(slots, s)
		}
	}
	return slots, waited, l.conn
}

// unanswered counts requests, if there is a connection.
func (l *link) unanswered() (n int, connected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests), l.conn != nil
}

// oldestWait is how long the oldest unanswered request has been waited for.
func (l *link) oldestWait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return 0
	}
	return l.conn.OldestWait()
}
