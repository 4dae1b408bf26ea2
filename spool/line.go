package spool

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/spill"
)

// Lane is who the fetched batches are for; *mirror.Lane satisfies it.
type Lane interface {
	Want() (at route.Position, generation uint32, maxBytes int32)
	Append(generation uint32, s *slab.Slab, batches []batch.Batch, next route.Position, x route.Extent)
	Extent(x route.Extent)
	Fail(generation uint32, f *route.Fault)
	Flow() mirror.Flow
	Settle(ctx context.Context, at route.Offset) error
}

// Pace is the limits of a partition, with or without a lane; mirror.Pace satisfies it.
type Pace interface {
	Due() bool
	Charge(records, bytes int64)
}

// Line is one partition's way from its fetcher to its lane. It is to the fetcher what a lane is.
type Line struct {
	outflow // guarded by stepping
	inflow  // guarded by mu

	spool     *Spool
	partition route.Partition
	origin    string
	pace      Pace
	wake      func() // the fetcher: what Want answers has changed
	turn      turn   // guarded by spool.mu

	stepping sync.Mutex // the worker's, or whoever's who opens or closes the queue; taken before mu

	mu   sync.Mutex // guards what follows; taken before a lane's
	lane Lane       // nil: it does not run yet
	held bool       // without a lane nothing is read on to disk
	bad  trouble
	// spilling: what is fetched goes to disk, and the lane is served from there.
	spilling bool
	hole     route.Offset // up to here the source serves the lane, since the disk does not have it; 0 = not so
	holed    uint32       // the lane's generation that this is so for: one that is read again gets from the disk first what lies before
	extent   route.Extent
	disk     Spilled // after the last step
	closed   bool
}

// Spilled is what a partition has on disk.
type Spilled struct {
	Bytes int64        // of its files
	Next  route.Offset // where they end; 0 where there are none
}

// Spilled says what the line had on disk a moment ago. It waits for no disk.
func (l *Line) Spilled() Spilled {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.disk
}

// outflow is the way from disk.
type outflow struct {
	queue  *spill.Queue // nil: nothing is on disk
	take   *spill.Take
	served uint32         // the lane's generation that take serves
	handed []route.Offset // where each item ends that was taken and is not committed
	from   route.Offset   // where the disk begins if it has to be opened again before there is a lane
}

// inflow is the way to disk.
type inflow struct {
	generation uint32         // of the fetches for it
	next       route.Position // where the disk ends, with what waits to be written
	waiting    []put          // fetched, not written yet
	bytes      int64          // of it
	withheld   bool           // Want said no
	barred     time.Time      // nothing is fetched before
}

// put is what came in one answer.
type put struct {
	slab    *slab.Slab // nil if there are no batches; else with a reference
	batches []batch.Batch
	first   route.Offset
	next    route.Position
	gap     bool // the source has deleted it
}

// A generation that is given to the fetcher has in its lowest bits what the fetch is for.
const (
	forLane = 0 // the direct way
	forDisk = 1
	forHole = 2 // the direct way through what is damaged on disk
	kinds   = 2 // bits
)

// ahead is how many bytes may be fetched for the disk and not be written yet.
const ahead = 4 << 20

// Line makes a partition's line. origin names the source's log: what is on disk of another one is set aside. wake is told that what Want answers
// has changed; it must not block. There may be one line of a partition at a time: spill.ErrBusy.
func (s *Spool) Line(p route.Partition, origin string, pace Pace, wake func()) (*Line, error) {
	l := &Line{spool: s, partition: p, origin: origin, pace: pace, wake: wake}
	l.extent = route.Extent{Start: route.NoOffset, LastStable: route.NoOffset, End: route.NoOffset}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines[p] != nil {
		return nil, fmt.Errorf("spill of %s: %w", p, spill.ErrBusy)
	}
	s.lines[p] = l
	return l, nil
}

// Origin is what the line was made with.
func (l *Line) Origin() string { return l.origin }

// Begin has everything from a stored position on fetched to disk before there is a lane.
func (l *Line) Begin(at route.Position) error {
	l.stepping.Lock()
	defer l.stepping.Unlock()
	l.from = at.Offset
	return l.spill(at)
}

// Hold keeps the line from reading on to disk for as long as it has no lane: its partition is paused, or stands still for something that is not the
// target's silence. With a lane it is the lane that says so.
func (l *Line) Hold(on bool) {
	l.mu.Lock()
	changed := l.held != on
	l.held = on
	l.mu.Unlock()
	if changed {
		l.Wake()
	}
}

// Open readies the line for a lane that stands at its checkpoint: what the disk has from there on is the lane's first. It serves nobody before Join.
func (l *Line) Open(at route.Position) {
	l.stepping.Lock()
	defer l.stepping.Unlock()
	l.from = at.Offset
	if l.queue != nil && l.queue.Stats().Committed != at.Offset {
		_ = l.leave() // it is opened again, where the lane is
	}
	if l.queue != nil {
		return
	}
	held, err := l.spool.store.Holds(l.partition)
	if err == nil && (held || l.always()) {
		err = l.spill(at)
	}
	if err != nil { // what the disk has may be all that there is of it
		l.mu.Lock()
		l.spilling, l.next = true, at
		l.mu.Unlock()
		l.failed(err)
	} else if !held && !l.always() {
		l.mu.Lock()
		l.spilling, l.next = false, route.Position{}
		l.mu.Unlock()
	}
}

// Join gives the line, which was opened at the lane's checkpoint, its lane. The lane may be served at once, so its other end must be there. It does
// no IO.
func (l *Line) Join(lane Lane) {
	l.mu.Lock()
	if !l.closed {
		l.lane = lane
	}
	l.mu.Unlock()
	l.Wake()
}

// always says that nothing goes past the disk.
func (l *Line) always() bool { return l.spool.cfg.Spill.Limits.MemoryCapacity == 0 }

// spill opens the queue at a position and leads what is fetched there. The caller holds stepping.
func (l *Line) spill(at route.Position) error {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return spill.ErrClosed
	}
	if l.queue == nil {
		q, err := l.spool.store.Queue(l.partition, l.origin, at.Offset)
		if err != nil {
			return err
		}
		l.queue = q
	}
	if next := l.queue.Stats().Next; next != at.Offset {
		at = route.Position{Offset: next, LeaderEpoch: l.lastEpoch()}
	}
	l.mu.Lock()
	l.dropLocked() // it may not begin there
	l.spilling, l.next, l.hole = true, at, 0
	l.generation++
	l.mu.Unlock()
	l.wake()
	l.spool.enqueue(l)
	return nil
}

// lastEpoch is the leader epoch right before the end of what is on disk; -1 if it is not known.
func (l *Line) lastEpoch() int32 {
	last, err := l.queue.Last()
	if err != nil {
		return -1
	}
	epoch := epochOf(last.Data)
	if last.Hold != nil {
		last.Hold.Release()
	}
	return epoch
}

// gapBytes is the size of an item that stands for positions which the source has deleted.
const gapBytes = 1

// emptyBytes is the size of an item that stands for positions of which nothing is forwarded: the leader epoch before its end. Batches are larger.
const emptyBytes = 4

func epochOf(data []byte) int32 {
	switch len(data) {
	case gapBytes:
		return -1
	case emptyBytes:
		return int32(binary.BigEndian.Uint32(data))
	}
	return batch.Batch(data).LeaderEpoch()
}

// Wake has the line looked after: what its lane wants has changed. It neither blocks nor calls back into the lane.
func (l *Line) Wake() {
	l.wake()
	l.spool.enqueue(l)
}

// settleTimeout is how long a store may take over a checkpoint, while the worker serves no other line.
const settleTimeout = 5 * time.Second

// settle stores the lane's checkpoint. Without a lane the disk begins at a stored one.
func (l *Line) settle(ctx context.Context, at route.Offset) error {
	l.mu.Lock()
	lane := l.lane
	l.mu.Unlock()
	if lane == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return lane.Settle(ctx, at)
}

// Want says what to fetch next, and for whom. See fetcher.Lane.
func (l *Line) Want() (at route.Position, generation uint32, maxBytes int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.withheld = false
	if l.lane != nil && (!l.spilling || l.hole > 0) {
		at, generation, maxBytes := l.lane.Want()
		switch {
		case l.spilling && at.Offset < l.hole && generation == l.holed && maxBytes > 0:
			return at, generation<<kinds | forHole, maxBytes
		case l.spilling:
		case at.Offset >= l.next.Offset:
			return at, generation<<kinds | forLane, maxBytes
		default: // it is read again, and the disk has it
			l.spillAgainLocked()
		}
	}
	room := max(0, ahead-l.bytes)
	if !l.spilling || l.closed || time.Now().Before(l.barred) {
		room = 0
	}
	held := l.held
	if l.lane != nil {
		held = l.lane.Flow().Held
	}
	if held || room > 0 && !l.pace.Due() {
		room = 0
	}
	if room < ahead/4 { // small fetches cost more than a short wait
		room = 0
	}
	l.withheld = room == 0
	return l.next, l.generation<<kinds | forDisk, int32(room)
}

// spillAgainLocked goes back to the disk, which still has what the lane wants.
func (l *Line) spillAgainLocked() {
	l.spilling = true
	l.generation++
	l.spool.enqueue(l)
}

// Append takes what was fetched. See fetcher.Lane.
func (l *Line) Append(generation uint32, s *slab.Slab, batches []batch.Batch, next route.Position, x route.Extent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extent = x
	kind, generation := generation&(1<<kinds-1), generation>>kinds
	switch {
	case kind == forDisk:
		if l.spilling && generation == l.generation&(1<<(32-kinds)-1) && !l.closed {
			l.keepLocked(s, batches, next)
		}
		if l.lane != nil {
			l.lane.Extent(x)
		}
	case l.lane == nil:
	case kind == forLane && !l.spilling:
		l.lane.Append(generation, s, batches, next, x)
	case kind == forHole && l.inHoleLocked(generation):
		batches, next = before(l.hole, batches, next)
		l.lane.Append(generation, s, batches, next, x)
		l.spool.enqueue(l)
	}
}

// inHoleLocked says that a fetch for the lane's generation may still be what the disk does not have.
func (l *Line) inHoleLocked(generation uint32) bool {
	return l.hole > 0 && generation == l.holed&(1<<(32-kinds)-1)
}

// before cuts off what begins at or behind an offset.
func before(end route.Offset, batches []batch.Batch, next route.Position) ([]batch.Batch, route.Position) {
	for i, b := range batches {
		if b.BaseOffset() < end {
			continue
		}
		batches, next = batches[:i], route.Position{Offset: end, LeaderEpoch: -1}
		break
	}
	if n := len(batches); next.Offset > end {
		next = route.Position{Offset: end, LeaderEpoch: -1}
		if n > 0 && batches[n-1].NextOffset() > end {
			next.Offset = batches[n-1].NextOffset()
		}
	}
	return batches, next
}

// keepLocked takes batches for the disk.
func (l *Line) keepLocked(s *slab.Slab, batches []batch.Batch, next route.Position) {
	p := put{first: l.next.Offset, next: next}
	records, bytes := int64(0), l.bytes
	for _, b := range batches {
		if b.NextOffset() <= l.next.Offset {
			continue // an answer may begin before the position
		}
		p.batches = append(p.batches, b)
		records, l.bytes = records+int64(b.Records()), l.bytes+int64(len(b))
		l.next = route.Position{Offset: b.NextOffset(), LeaderEpoch: b.LeaderEpoch()}
	}
	if len(p.batches) > 0 {
		p.slab = s
		s.Retain(1)
	}
	l.pace.Charge(records, l.bytes-bytes)
	if next.Offset > l.next.Offset {
		l.next = next
	}
	if l.next.Offset > p.first {
		l.waiting = append(l.waiting, p)
		l.spool.enqueue(l)
	}
}

// Extent takes news of the source log's ends. See fetcher.Lane.
func (l *Line) Extent(x route.Extent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extent = x
	if l.lane != nil {
		l.lane.Extent(x)
	}
}

// Fail takes a failure of the source. One of a fetch for the disk comes again when the lane has been given what is on disk; then it decides. But what
// lies behind a gap is read on to disk.
func (l *Line) Fail(generation uint32, f *route.Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind, generation := generation&(1<<kinds-1), generation>>kinds
	switch {
	case kind == forDisk && f.Code == mirror.CodeOutOfRange && f.Extent.Start > l.next.Offset:
		end := route.Position{Offset: f.Extent.Start, LeaderEpoch: -1}
		l.waiting = append(l.waiting, put{first: l.next.Offset, next: end, gap: true})
		l.next, l.withheld = end, true
		l.generation++
		l.spool.enqueue(l)
	case kind == forDisk:
		l.barred, l.withheld = time.Now().Add(l.spool.cfg.Retry), true
		l.spool.deps.Log.Warn("the source can't be read on to disk", "topic", l.partition.Topic, "partition", l.partition.Partition,
			"offset", int64(l.next.Offset), "err", f)
	case l.lane == nil:
	case kind == forHole && !l.inHoleLocked(generation): // of what the disk has
		l.wake()
	case kind == forHole && f.Extent.Start > l.hole:
		g := *f
		g.Extent.Start = l.hole // what lies behind is on disk
		l.lane.Fail(generation, &g)
	default:
		l.lane.Fail(generation, f)
	}
}

// Close ends the line, whose fetcher must have let go of it. What is on disk stays there, unless all of it is on the target and stored so.
func (l *Line) Close() error {
	l.stepping.Lock()
	defer l.stepping.Unlock()
	l.mu.Lock()
	lane := l.lane
	l.closed, l.lane = true, nil
	l.mu.Unlock()
	var err error
	if q := l.queue; q != nil && lane != nil && lane.Flow().Stored >= q.Stats().Next {
		l.drop()
		l.leaveTake()
		l.queue = nil
		err = q.Discard()
	} else {
		err = l.leave()
	}
	s := l.spool
	s.mu.Lock()
	if s.lines[l.partition] == l {
		delete(s.lines, l.partition)
	}
	s.mu.Unlock()
	return err
}

// drop gives back what waits to be written: it is fetched again.
func (l *Line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked()
}

func (l *Line) dropLocked() {
	for _, p := range l.waiting {
		if p.slab != nil {
			p.slab.Release()
		}
	}
	l.waiting, l.bytes = nil, 0
}
