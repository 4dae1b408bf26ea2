package fetcher

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/backoff"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

const (
	firstRoom = 1 << 20 // what a hot fetch asks for until it is seen how much comes
	leastRoom = 512 << 10
)

// loop fetches the hot or the cold partitions of a pair over a connection of its own. Everything but the mailbox belongs to its goroutine.
type loop struct {
	pair *pair
	f    *Fetchers
	hot  bool
	box  mailbox

	conn    *wire.Conn
	backoff *backoff.Backoff
	suspect bool // the connection may have damaged data: use another

	slots   map[route.Partition]*slot
	active  int     // slots that are not withheld
	dirty   []*slot // to be asked
	changed []*slot // to be listed if they changed
	gone    []*slot // to be forgotten by the session
	session session
	room    int64 // bytes that the next hot fetch asks for

	aborted wire.Aborted
	batches []batch.Batch // scratch of one partition's answer
	ranges  []outOfRange  // of one answer
	doubts  []doubt       // of one gathering
}

func newLoop(p *pair, hot bool) *loop {
	return &loop{
		pair: p, f: p.f, hot: hot,
		box:     mailbox{signal: make(chan struct{}, 1)},
		backoff: newBackoff(p.f.cfg.RetryMax),
		slots:   make(map[route.Partition]*slot),
		session: newSession(),
		room:    firstRoom,
	}
}

func (l *loop) run(ctx context.Context) {
	defer l.end()
	for ctx.Err() == nil {
		l.absorb()
		if len(l.slots) == 0 {
			l.f.health.up(l) // nobody needs this broker
			l.pause(ctx)
			continue
		}
		if !l.connect(ctx) {
			continue
		}
		l.gather(time.Now())
		l.prove(ctx)
		if l.active == 0 {
			l.pause(ctx)
			continue
		}
		l.fetch(ctx)
	}
}

// end closes the connection. The broker drops the session in time.
func (l *loop) end() {
	if l.conn != nil {
		l.conn.Close()
	}
	l.f.health.up(l)
}

// pause waits for mail.
func (l *loop) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-l.box.signal:
	}
}

// connect makes sure that there is a connection. It fails after a wait, so that it can be called again at once.
func (l *loop) connect(ctx context.Context) bool {
	if l.conn != nil {
		select {
		case <-l.conn.Done(): // closed by the broker while nothing was under way
			l.disconnect()
		default:
			if !l.suspect {
				return true
			}
			l.disconnect()
		}
	}
	conn, err := l.f.deps.Client.Dial(ctx, l.pair.broker)
	if err != nil {
		l.failed(ctx, err)
		return false
	}
	l.conn = conn
	l.session.versioned(conn.MaxVersion(int16(kmsg.Fetch)))
	return true
}

// disconnect ends the session too: the next one lists everybody anew, so that those who have left need not be remembered for it. A broker that went
// down with nobody left on it would be called unreachable, and dialled, until the router's next tick.
func (l *loop) disconnect() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
	l.suspect = false
	l.session.renew()
	for p, s := range l.slots {
		s.listed = false
		if s.m == nil {
			delete(l.slots, p)
		}
	}
}

// failed handles a broken link: all partitions stay, but the router looks whether others lead them now.
func (l *loop) failed(ctx context.Context, err error) {
	l.disconnect()
	if ctx.Err() != nil {
		return
	}
	l.f.metrics.errors.WithLabelValues(linkLabel).Inc()
	if l.f.health.fail(l, err) {
		l.f.deps.Log.Warn("source broker unreachable", "broker", l.pair.broker, "err", err)
	}
	l.f.router.post(ask{kind: askLost, broker: l.pair.broker})
	_ = l.backoff.Wait(ctx) // ends early only with ctx
}

// succeeded ends a row of failures.
func (l *loop) succeeded() {
	if l.backoff.Failures() == 0 {
		return
	}
	l.backoff.Reset()
	if l.f.health.up(l) {
		l.f.deps.Log.Info("source broker reachable again", "broker", l.pair.broker)
	}
}

// absorb reads the mail: who may be taken, who has left, who wants to be asked again.
func (l *loop) absorb() {
	for _, mail := range l.box.take() {
		s := l.slots[mail.m.p]
		mine := s != nil && s.m == mail.m
		switch mail.kind {
		case mailLeft:
			if mine && mail.m.owner.Load() != l {
				l.drop(s)
			}
		case mailOffer:
			if mail.m.take(l) {
				l.adopt(mail.m)
			}
		case mailWoke:
			// Mail for cold members comes to the hot loop, too, since the cold one may be in the middle of a long poll.
			if !mine && mail.m.steal(l) {
				l.adopt(mail.m)
			}
		}
	}
}

// adopt makes a slot for a member that l has just taken.
func (l *loop) adopt(m *member) {
	s := l.slots[m.p]
	if s == nil {
		s = &slot{p: m.p, withheld: true}
		l.slots[m.p] = s
	}
	s.m = m
	s.cooling = false
	s.extent, s.damage = noExtent, route.NoOffset
	s.lastData = time.Now()
	l.touch(s)
}

// drop forgets a member. Its slot stays until the session has forgotten the partition, too.
func (l *loop) drop(s *slot) {
	s.m = nil
	l.withhold(s, true)
	if !s.listed {
		delete(l.slots, s.p)
	}
}

// touch has a cold slot's lane asked before the next fetch. Hot ones are asked anyway.
func (l *loop) touch(s *slot) {
	if !l.hot && !s.dirty {
		s.dirty = true
		l.dirty = append(l.dirty, s)
	}
}

// withhold keeps count of who may be fetched.
func (l *loop) withhold(s *slot, withheld bool) {
	if s.withheld == withheld {
		return
	}
	s.withheld = withheld
	if !withheld {
		l.active++
		return
	}
	l.active--
	if s.listed {
		l.gone = append(l.gone, s)
	}
}

// gather asks lanes what they want: all of them if hot, since their room changes all the time; if cold only those that have news, since
// there may be ten thousand.
func (l *loop) gather(now time.Time) {
	if l.hot {
		for _, s := range l.slots {
			l.ask(s)
			l.cool(s, now)
		}
		return
	}
	for _, s := range l.dirty {
		s.dirty = false
		l.ask(s)
	}
	clear(l.dirty)
	l.dirty = l.dirty[:0]
}

func (l *loop) ask(s *slot) {
	if s.m == nil {
		return
	}
	w, ok := s.m.want(l)
	if !ok {
		l.drop(s)
		return
	}
	l.withhold(s, w.maxBytes <= 0)
	if s.withheld {
		return
	}
	if !l.hot {
		w.maxBytes = min(w.maxBytes, l.f.cfg.ColdBytes)
	}
	at := s.m.place.Load()
	if l.unproven(s.m, w, at) {
		l.drop(s)
		return
	}
	s.generation = w.generation
	s.want = entry{at: w.at, maxBytes: w.maxBytes, epoch: at.epoch, id: at.id}
	l.changed = append(l.changed, s)
}

// cool offers a hot partition without data to the cold loop. One that is behind the log's end only waits for its turn; if that lasts it is no
// longer believed.
func (l *loop) cool(s *slot, now time.Time) {
	idle := now.Sub(s.lastData)
	if s.m == nil || s.cooling || idle < l.f.cfg.ColdAfter || idle < 10*l.f.cfg.ColdAfter && !s.withheld && s.want.at.Offset < l.limit(s.extent) {
		return
	}
	s.cooling = s.m.offer(l, l.pair.cold)
}

// limit is the offset up to which there is something to fetch.
func (l *loop) limit(x route.Extent) route.Offset {
	if l.f.cfg.ReadCommitted {
		return x.LastStable
	}
	return x.End
}

// fetch sends one request and handles its answer.
func (l *loop) fetch(ctx context.Context) {
	budget := l.f.deps.Pool.Budget()
	maxBytes, wait := int64(l.f.cfg.ColdBytes), l.f.cfg.ColdWait
	if l.hot {
		maxBytes, wait = l.hotBytes(), l.f.cfg.HotIdleWait
		if l.active < len(l.slots) {
			wait = l.f.cfg.HotWait
		}
	}
	maxBytes = min(maxBytes, budget.Max()/4) // a fetch that waits must not keep the budget from all others
	if budget.Reserve(ctx, maxBytes) != nil {
		return // ctx has ended
	}
	req := l.request(int32(maxBytes), wait)
	// A large answer over a thin link takes its time: each MiB is allowed what a whole small answer is. That a broker sends nothing at all, the
	// connection notices earlier by itself.
	limit := wait + l.f.cfg.RequestTimeout*time.Duration(1+maxBytes>>20)
	fctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer to a fetch within %s", limit)) //nolint:err113 // only ever shown
	resp, s, err := l.conn.Fetch(fctx, req, l.f.deps.Pool, maxBytes)
	if err != nil && fctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(fctx), err)
	}
	cancel()
	if err != nil {
		l.session.req = nil // whoever failed may still hold it
		l.failed(ctx, err)
		return
	}
	if s != nil {
		defer s.Release()
	}
	l.answer(ctx, resp, s)
}

// hotBytes is what a hot fetch asks for: what the lanes want, but no more than about twice what came last, since what is reserved is kept
// from others while the fetch waits.
func (l *loop) hotBytes() int64 {
	var sum int64
	for _, s := range l.slots {
		if !s.withheld {
			sum += int64(s.want.maxBytes)
		}
	}
	return min(sum, l.room, int64(l.f.cfg.MaxBytes))
}

// resize adapts what is asked for to what comes.
func (l *loop) resize(s *slab.Slab) {
	if s == nil || !l.hot {
		return
	}
	switch n := int64(len(s.Bytes())); {
	case n >= l.room/2:
		l.room = min(2*l.room, int64(l.f.cfg.MaxBytes))
	case n < l.room/8:
		l.room = max(l.room/2, min(leastRoom, int64(l.f.cfg.MaxBytes)))
	}
}
