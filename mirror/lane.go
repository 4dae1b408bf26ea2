package mirror

import (
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Plan is what a lane must know of its partition's two ends. It does not change while the lane lives.
type Plan struct {
	Source, Target route.Partition
	// Records looks at each record; nil lets batches pass raw.
	Records func(*batch.Record) (batch.Verdict, error)
	// MaxBatchBytes is the target's max.message.bytes; larger batches are split. 0 = unknown.
	MaxBatchBytes int
	// KeepAppendTime makes the append time of a LogAppendTime source the records' own time, because the target would show the
	// producers' create times instead.
	KeepAppendTime bool
	// NoZstd: the target's Produce version does not take zstd; such batches are re-encoded in lz4.
	NoZstd bool
	// IDExpiration is the target's producer.id.expiration.ms; an id that was silent for half of it is asked about again. 0 = unknown.
	IDExpiration time.Duration
	// Shared: other partitions of the source go to the same target partition, or may.
	Shared bool
	// Sieve tells the batches that another mirror brought from where the lane writes to, which are left out; nil: there are none. Then somebody else
	// writes to the target, too.
	Sieve Sieve
	// On is what becomes of the partition in trouble.
	On Policies
	// Left is what right before the checkpoint is not copied, if something is not, as the lane before this one said: LeftOut or Gone.
	Left Anew
	// Merge is the size in bytes up to which small batches are merged while the lane stays behind; 0 = never.
	Merge int
	// Company is who else may have the partition at the same time by intention.
	Company Company
	// Replicated says that the target keeps more than one replica, so that a broker's round through replication limits the batches per second.
	Replicated bool
}

// Sieve tells batches of other mirrors by their producer ids. Its methods don't block, and Ask does not call told itself.
type Sieve interface {
	// Copies says whether an id is such a mirror's, if that is known.
	Copies(id int64) (copies, known bool)
	// Ask has it found out of ids; told is called once that is known.
	Ask(ids []int64, told func())
}

// Wakers are how a lane tells others that it wants to be asked again. They must neither block nor call back into the lane.
type Wakers struct {
	Source func() // what Want answers has changed
	Sink   func() // what Next or Inquiry answers has changed
}

// Lane is one partition's ring of batches between its source and its target, with four cursors: appended ≥ ready ≥ sent ≥ acked.
// Appended batches wait in the intake; those from acked to ready stand in the outlet's queue; sent lies between.
//
// It is driven from several goroutines and guards itself with one mutex, which it never holds while calling out, except to the wakers.
type Lane struct {
	plan   Plan
	stream *Stream
	wake   Wakers
	habit  habit // used by the stream's loop alone

	mu     sync.Mutex // guards everything below
	in     intake
	out    outlet
	pos    progress
	meter  meter
	counts *counts
	paces  []*paces // that hold for it
	queued bool     // in the stream's list
	// restless: among the stream's restless ones.
	restless bool
	// backlog: counted among the lanes that have more to send than they get away.
	backlog bool
	paused  bool
	// suspended: whether the partition is still this worker's is not known at the moment.
	suspended bool
	// closing is set when nothing more may be sent; drained closes when nothing is unanswered any more.
	closing bool
	drained chan struct{}
	gone    bool // to be discarded with the last answer
}

// progress is what is known of the position: the checkpoint at the acked cursor, and what of it is stored.
type progress struct {
	checkpoint  offsets.Checkpoint
	dirty       bool
	committed   route.Offset
	unstored    time.Time // since when the checkpoint is not what is stored; zero when it is
	behindSince time.Time // since when the source's end lies beyond the acked position
	halted      bool      // an event told of it, so its end must be told too
	shifted     bool      // the checkpoint's target offset is not that of this lane's last acknowledgement
	stopped     bool      // the source topic was deleted, an event told of it, and the source has not answered since
	foreign     bool      // an event told of another writer
	changed     bool      // an event told that the target does not hold what it acknowledged; until it acknowledges something
	// doubted: the target or the store knows of an owner of another epoch, so what is stored must be read again.
	doubted   bool
	lastError string
	anew      Anew   // why the lane can't go on from its checkpoint
	begun     int32  // the leader epoch of the checkpoint that the lane began at
	note      string // what an operator should know of a partition that is well
}

// newLane starts at a checkpoint, which is in the store already: its id and epoch must be there before the first produce (KIP-98 state
// that nobody remembers can't be taken over).
func newLane(s *Stream, plan Plan, at offsets.Checkpoint, wake Wakers) *Lane {
	l := &Lane{plan: plan, stream: s, wake: wake, restless: true}
	l.pos.checkpoint, l.pos.committed, l.pos.begun = at, at.SourceOffset, at.LeaderEpoch
	l.pos.shifted = true // what the target partition got meanwhile may be of one that shared it
	l.beginLocked()
	l.in.extent = unknownExtent()
	l.out.ready = at.Sequence
	l.out.trail.on = plan.Company != Alone && at.Opened && !at.Clean // whoever has left it so may be at work
	if !at.Clean {
		l.out.settled = s.now().Add(lingersFor)
	}
	return l
}

// Source is the partition that the lane reads.
func (l *Lane) Source() route.Partition { return l.plan.Source }

// Target is the partition that the lane writes.
func (l *Lane) Target() route.Partition { return l.plan.Target }

func (l *Lane) emit(e events.Event) { l.stream.deps.Events.Emit(e) }

// releaseLocked gives back what an entry holds.
func (l *Lane) releaseLocked(e *entry) {
	l.in.held -= int64(len(e.batch))
	release(e, l.stream.budget())
}

// beginLocked sets the position to the checkpoint's.
func (l *Lane) beginLocked() {
	c := &l.pos.checkpoint
	l.in.position, l.in.epoch = c.SourceOffset, c.LeaderEpoch
	l.in.handled, l.in.passed = c.SourceOffset, c.LeaderEpoch
	if l.in.aside.behind(c.SourceOffset) { // the source has deleted it meanwhile
		l.in.aside = aside{}
	}
}

// movedLocked notes that the acked position has moved, and tells of it.
func (l *Lane) movedLocked() {
	l.pos.dirty = true
	if l.pos.unstored.IsZero() {
		l.pos.unstored = l.stream.now()
	}
	l.stream.deps.Moved(l.plan.Source)
}

// resetLocked drops all that the lane holds and reads again from the checkpoint. Nothing may be unanswered.
func (l *Lane) resetLocked() {
	if l.out.flying.len() > 0 {
		panic("BUG: lane reset with unanswered batches")
	}
	for i := range l.in.entries {
		l.releaseLocked(&l.in.entries[i])
	}
	l.in.entries = l.in.entries[:0]
	q := &l.out.queue
	for q.len() > 0 {
		l.releaseLocked(q.at(q.head))
		q.pop()
	}
	l.in.generation++
	l.in.gap = 0
	l.beginLocked()
	l.out.ready, l.out.sent, l.out.certify = l.pos.checkpoint.Sequence, q.head, q.head
	l.out.holed, l.out.cut = false, false
	l.wake.Source()
}

// close stops the lane: nothing more is fetched or sent. The channel closes when nothing is unanswered.
func (l *Lane) close() <-chan struct{} {
	l.lock()
	defer l.mu.Unlock()
	if !l.closing {
		l.closing, l.drained = true, make(chan struct{})
		l.pos.dirty = true // that it was left clean is worth knowing
		l.drainedLocked()
		l.wake.Sink() // a window may be left to close
	}
	return l.drained
}

// drainedLocked tells that the lane is through: everything is answered, and no window is left to close.
func (l *Lane) drainedLocked() {
	o := &l.out
	if l.closing && o.flying.len() == 0 && (o.phase != open || o.window == 0 || o.sent == o.queue.head) {
		select {
		case <-l.drained:
		default:
			close(l.drained)
		}
	}
}

// discard releases what a closed lane still holds. What is unanswered is released with its last answer: a connection may be reading it.
func (l *Lane) discard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlogLocked(false)
	if l.out.flying.len() > 0 {
		l.gone = true
		return
	}
	l.resetLocked()
}

// takeCheckpoint returns the checkpoint if it changed since the last call; if not, the lane may come to rest.
func (l *Lane) takeCheckpoint() (offsets.Checkpoint, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pos.dirty {
		l.restLocked()
		return offsets.Checkpoint{}, false
	}
	l.pos.dirty = false
	c := l.pos.checkpoint
	c.Writer = l.stream.deps.Worker
	c.Clean = l.closing && l.cleanLocked()
	return c, true
}

// cleanLocked says that the target has nothing of ours beyond the checkpoint.
func (l *Lane) cleanLocked() bool {
	return l.evenLocked() && l.out.flying.len() == 0 && l.out.sent == l.out.queue.head
}

// evenLocked says that the target has nothing of ours beyond the checkpoint but what this lane itself has sent since it knew.
func (l *Lane) evenLocked() bool {
	o := &l.out
	return o.phase == open || o.phase == certifying && o.walkTo == l.pos.checkpoint.Sequence
}

// stored tells how the commit of a checkpoint went.
func (l *Lane) stored(c offsets.Checkpoint, overtaken bool, err error) {
	l.lock()
	defer l.mu.Unlock()
	if err != nil {
		l.pos.dirty = true
		return
	}
	if overtaken { // what is stored is another owner's, perhaps of another epoch, or nothing at all: it says nothing of ours
		l.pos.doubted = true
	} else {
		l.pos.committed, l.pos.unstored = max(l.pos.committed, c.SourceOffset), time.Time{}
		if l.pos.dirty { // it moved meanwhile
			l.pos.unstored = l.stream.now()
		}
	}
	if l.in.unstored > 0 && c.SourceOffset >= l.in.unstored {
		l.in.unstored = 0
		l.wake.Source()
	}
}
