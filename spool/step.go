package spool

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/spill"
)

// step does what there is to do for a line: begin or end to spill, write what was fetched, serve the lane.
func (l *Line) step(ctx context.Context) {
	l.stepping.Lock()
	defer l.stepping.Unlock()
	l.mu.Lock()
	lane, spilling, closed := l.lane, l.spilling, l.closed
	l.mu.Unlock()
	if closed {
		return
	}
	var err error
	switch {
	case spilling:
		if err = l.write(ctx); err == nil && lane != nil {
			err = l.serve(ctx, lane)
		}
	case lane != nil:
		err = l.direct(lane)
	}
	if err == nil && lane != nil && l.queue != nil {
		err = l.queue.Trim(lane.Flow().Stored)
	}
	switch {
	case err == nil:
		l.mended()
	case ctx.Err() == nil:
		l.failed(err)
	}
	disk := Spilled{}
	if l.queue != nil {
		now := l.queue.Stats()
		disk = Spilled{Bytes: now.DiskBytes, Next: now.Next}
	}
	l.mu.Lock()
	l.disk = disk
	wake := l.withheld && l.bytes <= ahead/2 && !time.Now().Before(l.barred)
	l.mu.Unlock()
	if wake {
		l.wake()
	}
}

// trouble is a disk that fails.
type trouble struct {
	reason string // of the last failure; "" = there is none
	at     time.Time
}

// mendedAfter is how many retries it takes without another failure until the disk counts as mended: one may well be opened and then fail at each write.
const mendedAfter = 10

// failed opens the queue again later: what a disk that failed holds is not known. Nothing is lost by that, since what is not safe there is fetched
// again. It is told once, until the disk is mended.
func (l *Line) failed(err error) {
	_ = l.leave()
	now := time.Now()
	l.mu.Lock()
	news := l.bad.reason == ""
	l.bad = trouble{reason: err.Error(), at: now}
	l.barred = now.Add(l.spool.cfg.Retry)
	l.mu.Unlock()
	if news {
		e := events.Of(l.partition, events.SpillFailed, events.Warning, "the disk that the partition spills to fails, and is tried again")
		l.spool.deps.Events.Emit(e.Because(err.Error()))
	}
}

// mended forgets trouble that has been over for a while.
func (l *Line) mended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bad.reason != "" && time.Since(l.bad.at) > mendedAfter*l.spool.cfg.Retry {
		l.bad = trouble{}
	}
}

// Trouble says why the disk fails; "" if it does not.
func (l *Line) Trouble() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bad.reason
}

// leave closes the queue, whose files stay.
func (l *Line) leave() error {
	l.drop()
	l.leaveTake()
	if l.queue == nil {
		return nil
	}
	err := l.queue.Close()
	l.queue = nil
	return err
}

func (l *Line) leaveTake() {
	if l.take != nil {
		l.take.Rollback()
		l.take, l.handed = nil, nil
	}
}

// direct looks after a line that does not spill: whether it must, and whether what it spilled is needed no more.
func (l *Line) direct(lane Lane) error {
	f := lane.Flow()
	if l.take != nil {
		if err := l.committed(f.Acked.Offset); err != nil {
			return err
		}
	}
	q := l.queue
	gone := q != nil && f.Stored >= q.Stats().Next
	if gone {
		l.leaveTake()
		l.queue = nil
		if err := q.Discard(); err != nil {
			return err
		}
		l.mu.Lock()
		l.next = route.Position{} // no disk any more that would have something
		l.mu.Unlock()
	}
	limits := l.spool.cfg.Spill.Limits
	if f.Stalled.IsZero() || time.Since(f.Stalled) < limits.OverflowTimeout {
		return nil
	}
	if l.queue != nil && f.Acked.Offset >= l.queue.Stats().Next {
		return nil // first its checkpoint is stored, as it is from time to time; then it can begin anew
	}
	return l.spill(f.Acked)
}

// atOnce is how many bytes go into one transaction. A line that is drained keeps so much of what it has read and not given yet.
const atOnce = 256 << 10

// write brings to disk what was fetched.
func (l *Line) write(ctx context.Context) error {
	if l.queue == nil {
		return l.reopen()
	}
	l.mu.Lock()
	puts := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	var err error
	for i := range puts {
		if err == nil {
			err = l.put(ctx, &puts[i])
		}
		if puts[i].slab != nil {
			puts[i].slab.Release()
		}
	}
	l.mu.Lock()
	for i := range puts {
		for _, b := range puts[i].batches {
			l.bytes -= int64(len(b))
		}
	}
	l.mu.Unlock()
	if err == nil {
		if len(puts) > 0 {
			l.spool.room(false, "")
		}
		return nil
	}
	l.again()
	if errors.Is(err, spill.ErrFull) {
		l.spool.room(true, err.Error())
		return nil
	}
	return err
}

// again has what could not be written fetched again after a while.
func (l *Line) again() {
	at := route.Position{Offset: l.queue.Stats().Next, LeaderEpoch: l.lastEpoch()}
	l.mu.Lock()
	l.dropLocked() // it begins behind what could not be written
	l.next = at
	l.generation++
	l.barred = time.Now().Add(l.spool.cfg.Retry)
	l.withheld = true
	l.mu.Unlock()
}

// reopen opens the queue after a failure.
func (l *Line) reopen() error {
	l.mu.Lock()
	lane, barred := l.lane, time.Now().Before(l.barred)
	l.mu.Unlock()
	if barred {
		return nil
	}
	at := route.Position{Offset: l.from, LeaderEpoch: -1}
	if lane != nil {
		at = lane.Flow().Acked
	}
	return l.spill(at)
}

// put writes one answer, in transactions of a bounded size.
func (l *Line) put(ctx context.Context, p *put) error {
	at, size := p.first, 0
	t := l.queue.Put()
	flush := func() error {
		if err := t.Commit(ctx); err != nil {
			t.Rollback()
			return err
		}
		t, size = l.queue.Put(), 0
		return nil
	}
	for _, b := range p.batches {
		if size > 0 && size+len(b) > atOnce {
			if err := flush(); err != nil {
				return err
			}
		}
		p.slab.Retain(1)
		t.Add(spill.Item{First: at, Next: b.NextOffset(), Data: b, Hold: p.slab})
		at, size = b.NextOffset(), size+len(b)
	}
	if p.gap {
		t.Add(spill.Item{First: at, Next: p.next.Offset, Data: make([]byte, gapBytes)})
	} else if p.next.Offset > at {
		t.Add(spill.Item{First: at, Next: p.next.Offset, Data: binary.BigEndian.AppendUint32(nil, uint32(p.next.LeaderEpoch))})
	}
	return flush()
}

// mostFeed is how many bytes a lane is given at once.
const mostFeed = 1 << 20

// serve gives the lane from disk what it has room for.
func (l *Line) serve(ctx context.Context, lane Lane) error {
	for l.queue != nil {
		at, generation, room := lane.Want()
		if l.take == nil || l.served != generation {
			if err := l.retake(generation); err != nil {
				return err
			}
		}
		flow := lane.Flow()
		if err := l.committed(flow.Acked.Offset); err != nil {
			return err
		}
		l.mu.Lock()
		if at.Offset >= l.hole {
			l.hole = 0
		}
		hole := l.hole > 0
		l.mu.Unlock()
		room = min(room, mostFeed)
		if hole || room == 0 || !l.spool.admit(ctx, int64(room)) {
			return nil
		}
		more, err := l.feed(lane, at.Offset, generation, int(room))
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// retake begins to take anew at what is not acknowledged.
func (l *Line) retake(generation uint32) error {
	l.leaveTake()
	l.mu.Lock()
	l.hole = 0
	l.mu.Unlock()
	take, err := l.queue.Take()
	if err != nil {
		return err
	}
	l.take, l.served = take, generation
	return nil
}

// committed ends the take of what is acknowledged.
func (l *Line) committed(acked route.Offset) error {
	n := 0
	for n < len(l.handed) && l.handed[n] <= acked {
		n++
	}
	if n == 0 {
		return nil
	}
	l.handed = append(l.handed[:0], l.handed[n:]...)
	return l.take.Commit(n)
}

// feed gives the lane, which stands at an offset, up to room bytes. It says whether there may be more.
func (l *Line) feed(lane Lane, at route.Offset, generation uint32, room int) (more bool, err error) {
	var (
		g    = gift{line: l, lane: lane, generation: generation}
		size int
	)
	defer l.take.Drop() // the lane has what it keeps
	for size < room {
		item, err := l.take.Next(0)
		var damage *spill.Corruption
		switch {
		case errors.Is(err, spill.ErrEmpty) && g.next.Offset == 0:
			l.caughtUp(lane)
			return false, nil
		case errors.Is(err, spill.ErrEmpty):
			g.give()
			return true, nil
		case errors.As(err, &damage):
			g.give()
			l.missing(damage.Next, max(at, g.next.Offset))
			return true, nil
		case err != nil:
			return false, err
		}
		l.handed = append(l.handed, item.Next)
		switch {
		case item.Next <= at: // the lane has had it from the source
			l.take.Drop()
		case len(item.Data) == gapBytes:
			g.give()
			l.missing(item.Next, max(at, g.next.Offset))
			return true, nil
		case len(item.Data) == emptyBytes:
			g.next = route.Position{Offset: item.Next, LeaderEpoch: epochOf(item.Data)}
			g.give()
			return true, nil
		default:
			g.add(item)
			size += len(item.Data)
		}
	}
	g.give()
	return true, nil
}

// gift is what a lane is given at once: batches that lie in one piece of memory.
type gift struct {
	line       *Line
	lane       Lane
	generation uint32

	in      *slab.Slab
	batches []batch.Batch
	next    route.Position // behind all that was given; zero: nothing was
	records int64
	bytes   int64
}

func (g *gift) add(item spill.Item) {
	held, _ := item.Hold.(*slab.Slab) // as Alloc made it
	if g.in != nil && held != g.in {
		g.give()
	}
	b := batch.Batch(item.Data)
	g.in, g.batches = held, append(g.batches, b)
	g.records, g.bytes = g.records+int64(b.Records()), g.bytes+int64(len(b))
	g.next = route.Position{Offset: item.Next, LeaderEpoch: b.LeaderEpoch()}
}

func (g *gift) give() {
	if g.next.Offset == 0 {
		return
	}
	g.line.pace.Charge(-g.records, -g.bytes) // they were counted when they were fetched
	g.lane.Append(g.generation, g.in, g.batches, g.next, g.line.known())
	g.in, g.batches, g.records, g.bytes = nil, g.batches[:0], 0, 0
}

// known is what is known of the ends of the source's log.
func (l *Line) known() route.Extent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.extent
}

// missing has the source serve the lane up to where the disk goes on: what lies before is damaged there, or was gone before it was read.
func (l *Line) missing(next, at route.Offset) {
	if next <= at {
		return
	}
	l.mu.Lock()
	l.hole, l.holed = next, l.served
	l.mu.Unlock()
	l.wake()
}

// caughtUp goes back to the direct way if the lane has been given all that is on disk and its target takes it.
func (l *Line) caughtUp(lane Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := lane.Flow()
	at, generation, room := lane.Want()
	enough := f.Free >= l.spool.cfg.Spill.Limits.OverflowDeactivationThreshold
	if l.always() || len(l.waiting) > 0 || !f.Stalled.IsZero() || !enough || room == 0 || generation != l.served || at.Offset < l.next.Offset {
		return
	}
	l.spilling = false
	l.wake()
}
