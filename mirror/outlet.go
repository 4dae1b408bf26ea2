package mirror

import (
	"fmt"
	"strconv"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// phase is where a lane stands with its target.
type phase int8

const (
	// asking: it is not known what the target holds; an inquiry is wanted, under way, or waits for its time.
	asking phase = iota
	// walking: the target holds more than the lane has read; what is read is compared with it, not sent.
	walking
	// certifying: one batch may be in flight, alone, with acks=all.
	certifying
	// open: the (id, epoch) was certified; batches are pipelined.
	open
	// failing: something failed; the lane rewinds when what is unanswered has been answered or its connection was closed.
	failing
	// halted: the partition waits for its retry time or for an operator.
	halted
)

// outlet is the lane's side towards the target. Everything in its queue is ready: handled, patched, with its sequence.
type outlet struct {
	queue  ring[entry]
	ready  int32        // sequence that the next ready entry gets
	sent   uint64       // the next entry to send
	flying ring[uint64] // entries that were sent and not answered, in order
	window int          // batches sent since the last one with acks=all
	opened int          // bytes of them
	// settled is when nothing can come to be stored any more that was sent over a lost connection, or by an owner before this one.
	settled time.Time
	// stamp is what the target counts the age of our id from: the timestamp of its last batch of ours, in ms. Only where producers' times are kept
	// it can be old when the batch is new; 0 or -1 when not known.
	stamp int64

	short   time.Time    // since when the target seems to hold more than the source has,
	shortAt route.Offset // which ends there
	cut     bool         // entries were made of others to repeat what an earlier owner has sent; holed, too
	trail   trail
	takeover
}

// tail is what is known of the target's last batch of ours.
type tail struct {
	stamp int64        // its timestamp in ms; -1 = not known
	mark  offsets.Mark // its last record; the zero Mark = not known
	read  bool         // the log was read, so that more can't be known now
	lost  bool         // the log was read and does not show it, because it is not replicated yet or deleted already
	end   route.Offset // the target offset behind it, if the log shows it; else 0
	after route.Offset // end, where the log must do because a repeat would be stored again; 0 = not so

	places int   // records of the walk that look like the last one
	place  int32 // the sequence, as counted, that follows the latest of them

	reader *batch.Reader // of batches that are compared with it; nil before the first. One for all: its memory is as large as a batch
}

// takeover is the state of the procedure that finds out what the target holds.
type takeover struct {
	phase     phase
	walkTo    int32     // walking: the sequence that follows the target's last record of ours
	certify   uint64    // certifying: the entry to send alone
	holed     bool      // what follows the checkpoint is no longer whole in the queue: only the source has it
	repeated  bool      // the last stored batch must not be sent again to certify: its boundaries differ, or it would be stored again
	bounds    int32     // base sequence of the last stored batch, as the target's log shows it; -1 = not known
	inquiring bool      // an inquiry is under way
	heard     time.Time // when what is known of the target was asked for, or acknowledged
	askedAt   time.Time // when the last inquiry began
	askLog    bool      // the next inquiry must read the log
	noLog     bool      // we may not read the log
	doubt     time.Time // since when the target seems to have less than it acknowledged
	doubted   time.Time // when it seemed so the last time
	notBefore time.Time // the next inquiry's time
	failures  int       // since the last acknowledgement
	failedAt  time.Time // when the first of them came
	fault     *route.Fault
	excess    int       // bytes of the batch that was refused for its size, if that is above the limit that we know; else 0
	since     time.Time // when the phase began
	tail      tail      // the target's last batch of ours
}

func (l *Lane) enterLocked(p phase) {
	if p == open {
		l.out.tail.reader = nil // there is nothing left to compare
	}
	l.out.phase, l.out.since = p, l.stream.now()
	l.stirLocked() // also by a question that finds out that the target has been silent for too long
}

// Next is the size in bytes of the batch that Take would hand out; 0 if there is none; negative if the lane wants an Inquiry first.
func (l *Lane) Next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := l.nextLocked(); ok {
		return len(l.out.queue.at(i).batch)
	}
	if l.out.phase == asking && !l.out.inquiring && !l.heldLocked() && !l.closing {
		return -1
	}
	return 0
}

// Take hands out the next batch and moves `sent`. all says that it must go with acks=all. The sink calls Answer once for each batch
// taken, in the order of taking, also when its connection is lost.
func (l *Lane) Take() (b batch.Batch, all bool) {
	l.lock()
	defer l.mu.Unlock()
	i, ok := l.nextLocked()
	if !ok {
		return nil, false
	}
	o := &l.out
	again := o.phase == open && i+1 == o.sent
	o.flying.push(i)
	if !again {
		o.sent = i + 1
	}
	e := o.queue.at(i)
	e.sent = l.stream.now()
	o.window++
	o.opened += len(e.batch)
	full := o.window >= l.stream.cfg.AckWindow || int64(o.opened) >= l.windowBytesLocked(e.sent)
	if all = again || o.phase != open || full || l.agedLocked(e.batch.MaxTimestamp()); all {
		o.window, o.opened = 0, 0
	}
	return e.batch, all
}

// SentAll tells that the batch taken last went out with acks=all although the lane did not ask for it: a request has one setting for all
// its partitions.
func (l *Lane) SentAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.window, l.out.opened = 0, 0
}

// windowBytesLocked is how many bytes an acknowledgement window may hold: nothing of it is freed before its end, so a lane that may hold
// little must end it early, or it would be full and wait for the window to be closed as if it had run dry.
func (l *Lane) windowBytesLocked(now time.Time) int64 {
	return min(mostWindowBytes, l.meter.limit(now, l.stream.cfg.LaneBytes)/4)
}

const mostWindowBytes = 1 << 20

// nextLocked finds the entry to send.
func (l *Lane) nextLocked() (uint64, bool) {
	o := &l.out
	q := &o.queue
	switch {
	case l.closing && o.phase == open && o.flying.len() == 0:
		return l.windowEndLocked() // so that the next owner need not find out what became of it
	case l.closing, l.heldLocked():
		return 0, false
	}
	switch o.phase {
	case certifying:
		for o.certify < q.tail && q.at(o.certify).records == 0 {
			o.certify++
		}
		if o.certify == q.tail || o.flying.len() > 0 || l.forgottenLocked(o.certify) {
			return 0, false
		}
		return o.certify, true
	case open:
		for o.sent < q.tail && q.at(o.sent).records == 0 {
			o.sent++
		}
		if o.sent < q.tail {
			return o.sent, o.flying.len() > 0 || !l.forgottenLocked(o.sent)
		}
		return l.windowEndLocked()
	case asking, walking, failing, halted:
	}
	return 0, false
}

// windowEndLocked is the last batch sent, if the lane has run dry in the middle of an acknowledgement window: sent again with acks=all it
// closes the window.
func (l *Lane) windowEndLocked() (uint64, bool) {
	o := &l.out
	if o.window == 0 || o.sent == o.queue.head || o.flying.len() > 0 {
		return 0, false
	}
	i := o.sent - 1
	if !l.closing && l.stream.now().Sub(o.queue.at(i).sent) < windowQuiet {
		return 0, false
	}
	for o.queue.at(i).records == 0 {
		if i == o.queue.head {
			return 0, false
		}
		i--
	}
	if l.forgottenLocked(i) {
		return 0, false
	}
	o.sent = i + 1 // nothing is forwarded of the empty ranges behind it; they are passed again
	return i, true
}

// windowQuiet is how long a lane must have had nothing to send before its window is closed by sending the last batch again.
const windowQuiet = 20 * time.Millisecond

// agedAfter is how long after the last word of the target an id may be forgotten whose last records are as old as ids get. The target looks for such
// ids from time to time, by default every ten minutes; in a shorter silence no other owner takes over.
const agedAfter = 30 * time.Second

// lingersFor is how long what was sent over a connection that is gone may still come to be stored: a target reads what has arrived and works it off.
const lingersFor = 5 * time.Second

// forgottenLocked says that the target may have forgotten the id and would take any sequence, also a repeat, because nothing was heard of it for so
// long, or because entry i has old records and may be on its way to it already. The lane then asks again. Nothing may be unanswered.
func (l *Lane) forgottenLocked(i uint64) bool {
	o := &l.out
	switch {
	case o.heard.Before(o.settled) && l.agedLocked(o.queue.at(i).batch.MaxTimestamp()):
		o.notBefore = o.settled
	case l.silentSinceLocked(o.heard), l.agedLocked(o.stamp) && l.sinceLocked(o.heard) > agedAfter:
	default:
		return false
	}
	l.askAgainLocked()
	l.drainedLocked()
	return true
}

// askAgainLocked begins the take-over anew. Nothing may be unanswered.
func (l *Lane) askAgainLocked() {
	o := &l.out
	o.sent, o.window, o.opened = o.queue.head, 0, 0
	if o.holed {
		l.resetLocked()
	}
	l.enterLocked(asking)
}

// Answer takes the target's answer to the oldest batch that was taken and not answered: all as it was sent, base the target offset of
// its first record, or the fault.
func (l *Lane) Answer(all bool, base route.Offset, f *route.Fault) {
	now := l.stream.now()
	l.lock()
	defer l.mu.Unlock()
	o := &l.out
	if o.flying.len() == 0 {
		panic("BUG: answer to a batch that was not sent")
	}
	i := o.flying.pop()
	if f != nil && f.Class == route.Ambiguous {
		o.settled = now.Add(lingersFor)
	}
	switch {
	case o.phase == failing: // what came after the first failure is found out by the take-over
	case f != nil:
		f = l.sizedLocked(i, f)
		l.setAsideLocked(i, f)
		l.failedLocked(f)
	case all && l.elsewhereLocked(i, base):
		l.failedLocked(l.targetChangedLocked(base))
	case all:
		foreign := l.foreignLocked(i, base)
		l.ackedLocked(i, base, now)
		if foreign != nil && l.plan.On.ForeignWriter == Halt {
			l.failedLocked(foreign)
		}
	default: // appended by the leader and by nobody else yet: proves nothing, frees nothing, moves nothing
	}
	if o.phase == failing && o.flying.len() == 0 {
		l.rewindLocked()
	}
	l.drainedLocked()
	if l.gone && o.flying.len() == 0 {
		l.resetLocked()
		return
	}
	l.yieldLocked()
	if o.phase == certifying || o.window > 0 && o.flying.len() == 0 {
		l.wake.Sink()
	}
}

// The protocol's names for a batch beyond the topic's max.message.bytes, and for one beyond its segment.bytes.
const (
	codeTooLarge      = "MESSAGE_TOO_LARGE"
	codeBeyondSegment = "RECORD_LIST_TOO_LARGE"
)

// sizedLocked adds to the refusal of entry i for its size what must be compared to mend it.
func (l *Lane) sizedLocked(i uint64, f *route.Fault) *route.Fault {
	q := &l.out.queue
	if f.Code != codeTooLarge && f.Code != codeBeyondSegment || i < q.head || i >= q.tail {
		return f
	}
	l.out.excess = 0
	limit := "of the topic is not known"
	if l.plan.MaxBatchBytes > 0 {
		limit = "of the topic was " + strconv.Itoa(l.plan.MaxBatchBytes) + " when the partition began"
		if size := len(q.at(i).batch); size > l.plan.MaxBatchBytes {
			l.out.excess = size
		}
	}
	e := q.at(i)
	sized := *f
	sized.Err = fmt.Errorf("the batch of %d records at source offset %d has %d bytes for the target; max.message.bytes %s", //nolint:err113 // only ever shown
		e.records, e.first, len(e.batch), limit)
	return &sized
}

// elsewhereLocked says that entry i was stored before what was acknowledged earlier: the topic was made anew between two batches. No error told
// of it, since a log that does not know the id takes any sequence.
func (l *Lane) elsewhereLocked(i uint64, base route.Offset) bool {
	return i >= l.out.queue.head && base >= 0 && base < l.pos.checkpoint.TargetOffset
}

func (l *Lane) targetChangedLocked(base route.Offset) *route.Fault {
	c := &l.pos.checkpoint
	why := fmt.Errorf("the target stored a batch at offset %d, although it had acknowledged everything before %d", base, c.TargetOffset) //nolint:err113 // only ever shown
	l.emit(events.Of(l.plan.Source, events.TargetChanged, events.Error, "the target does not hold what it acknowledged").
		Range(c.SourceOffset, c.SourceOffset).Because(why.Error()))
	return &route.Fault{Class: route.Refused, Code: "TARGET_CHANGED", Err: why}
}

// ackedLocked moves `acked` past entry i: an answer with acks=all proves that it and everything before it is replicated. This is the only
// place where a position advances over records.
func (l *Lane) ackedLocked(i uint64, base route.Offset, now time.Time) {
	o := &l.out
	q := &o.queue
	if i < q.head {
		return // closed a window whose end had been acknowledged already
	}
	c := &l.pos.checkpoint
	e := q.at(i)
	l.intrudedLocked(e, base)
	if o.phase == certifying {
		l.counts.stored(offsets.Ahead(c.Sequence, o.walkTo))
	}
	c.SourceOffset, c.Sequence, c.LeaderEpoch, c.Opened, c.AckedAt = e.next, e.end(), e.epoch, true, now
	o.heard, o.stamp, l.pos.shifted = now, e.batch.MaxTimestamp(), false
	c.TargetOffset = route.NoOffset
	if base >= 0 {
		c.TargetOffset = base + route.Offset(e.records)
	}
	for q.head <= i {
		e := q.at(q.head)
		if e.records > 0 {
			l.meter.acked(now, e)
			l.stream.records.Add(int64(e.records))
			l.counts.acked(now, e)
		}
		l.releaseLocked(e)
		q.pop()
	}
	o.sent = max(o.sent, q.head)
	if o.phase == certifying {
		l.enterLocked(open)
		o.sent = q.head
		o.holed, o.cut, o.repeated = false, false, false
		o.trail = trail{}
		l.wake.Sink()
	}
	o.failures, o.doubt, o.short, o.fault = 0, time.Time{}, time.Time{}, nil
	l.pos.changed = false
	l.recoveredLocked()
	l.trimLocked()
	l.passLocked()
	l.leaveOutLocked()
	if q.len() == 0 {
		l.backlogLocked(false)
	}
	l.lagLocked(now)
	l.movedLocked()
	l.roomLeftLocked(now)
}

// trimLocked moves `acked` over ranges of which nothing is forwarded, if nothing before them is unacknowledged. Before it is known that the target
// has nothing beyond the checkpoint it moves nothing: records may have been taken away there since they were stored, and the walk counts from the
// checkpoint's offset.
func (l *Lane) trimLocked() {
	q := &l.out.queue
	if l.out.holed || !l.evenLocked() {
		return
	}
	for q.len() > 0 && q.at(q.head).records == 0 {
		l.pos.checkpoint.SourceOffset, l.pos.checkpoint.LeaderEpoch = q.at(q.head).next, q.at(q.head).epoch
		l.movedLocked()
		q.pop()
	}
	l.out.sent = max(l.out.sent, q.head)
	l.out.certify = max(l.out.certify, q.head)
}

// failedLocked begins the way back: nothing new is sent until the take-over is through.
func (l *Lane) failedLocked(f *route.Fault) {
	o := &l.out
	if o.phase == certifying && f.Class == route.Order && o.certify < o.sent && offsets.Ahead(o.queue.at(o.certify).seq, o.walkTo) > 0 {
		o.repeated, o.askLog = true, !o.noLog && l.plan.Company == Alone // its boundaries stand in the log, unless another owner has gone on meanwhile
	}
	l.enterLocked(failing)
	o.fault = f
	l.pos.lastError = f.Error()
}

// rewindLocked sets sent := acked. What the fault means decides when the target is asked again.
func (l *Lane) rewindLocked() {
	o := &l.out
	o.sent, o.window, o.opened = o.queue.head, 0, 0
	if o.failures == 0 {
		o.failedAt = l.stream.now()
	}
	trails := l.plan.Company != Alone && o.fault.Class == route.Order
	if o.holed && (!trails || o.cut) || l.stuckLocked() {
		l.resetLocked()
	}
	o.failures++
	l.enterLocked(asking)
	switch o.fault.Class {
	case route.Refused, route.Corrupt:
		if l.in.aside.fault == o.fault { // it is read again, and otherwise
			l.resetLocked()
			l.retryLocked(3, 20*time.Millisecond)
			break
		}
		l.haltLocked(o.fault)
	case route.Order:
		if l.retryLocked(3, 20*time.Millisecond); trails {
			l.overtakenLocked()
		}
	case route.Busy:
		l.retryLocked(0, 200*time.Millisecond)
	case route.Moved, route.Ambiguous, route.SourceChanged, route.Unreachable:
		l.retryLocked(1, 20*time.Millisecond)
	}
	l.wake.Sink()
}

// lateAfter is how late an answer must be for what comes meanwhile to be kept apart from what others fetched.
const lateAfter = time.Second

// waitsLocked says that what becomes ready now stays for a while.
func (l *Lane) waitsLocked() bool {
	o := &l.out
	switch {
	case o.phase != open:
		return true
	case o.flying.len() == 0:
		return false
	}
	i := *o.flying.at(o.flying.head)
	return i >= o.queue.head && l.stream.now().Sub(o.queue.at(i).sent) > lateAfter
}

// stuckLocked says that the target has taken nothing for a while: the lane's memory serves others until it does again.
func (l *Lane) stuckLocked() bool {
	o := &l.out
	return o.failures > 0 && l.stream.now().Sub(o.failedAt) > l.stream.cfg.HoldFor
}

// retryLocked sets the time of the next inquiry: at once for the first `free` failures in a row, then after a growing, random delay, so
// that two owners of one partition don't throw each other out for ever.
func (l *Lane) retryLocked(free int, least time.Duration) {
	o := &l.out
	o.notBefore = l.stream.now()
	if n := o.failures - free; n > 0 {
		span := min(least<<min(n-1, 6), 2*time.Second)
		o.notBefore = o.notBefore.Add(span/2 + l.stream.deps.Jitter(span))
	}
}
