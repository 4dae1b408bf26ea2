package mirror

import (
	"fmt"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// The take-over procedure. It runs at start, after a move, a lost connection, a new leader and every ambiguous failure:
//
//	asking      what does the target's leader have of our id? The answer is a hint.
//	walking     go through the lane from the checkpoint to the batch that ends where the target stands
//	certifying  send one batch, alone, with acks=all: the next one, or the last stored one again; its OK proves all before it
//	open        pipeline
//
// Any failure leads through failing back to asking. Nothing counts as acknowledged before an answer with acks=all.

// codeOtherEpoch is the protocol's name for an epoch that is not the newest of its producer id.
const codeOtherEpoch = "INVALID_PRODUCER_EPOCH"

// codeLogLong is the producer's name for a log of which more is left to read than one turn allows.
const codeLogLong = "LOG_LONG"

// doubtFor is how long the target must seem to have less than it acknowledged before that is believed: followers that lag, and deposed
// leaders that don't know it yet, say so too.
const doubtFor = time.Minute

// Inquiry is what the sink shall ask about the target now; if it is not due yet, the time to come again.
func (l *Lane) Inquiry() (q offsets.Inquiry, due time.Time) {
	now := l.stream.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.out
	if o.phase != asking || o.inquiring || l.heldLocked() || l.closing {
		return q, due
	}
	if now.Before(o.notBefore) {
		return q, o.notBefore
	}
	o.inquiring, o.askedAt = true, now
	c := &l.pos.checkpoint
	q = offsets.Inquiry{Question: offsets.AskProducer, ProducerID: c.ProducerID, ProducerEpoch: c.ProducerEpoch, From: c.TargetOffset}
	if c.Opened && c.TargetOffset > 0 {
		q.From-- // the last record that was acknowledged shows that the log is still the one that acknowledged it
	}
	if o.askLog {
		q.Question = offsets.AskLog
	}
	return q, due
}

// Hint takes the answer to an Inquiry, or why there is none.
func (l *Lane) Hint(h offsets.Hint, f *route.Fault) {
	l.lock()
	defer l.mu.Unlock()
	o := &l.out
	o.inquiring = false
	if o.phase != asking {
		return
	}
	if f != nil {
		l.unansweredLocked(f)
	} else {
		l.hintedLocked(h)
		l.trimLocked()
		l.passLocked()
		l.leaveOutLocked()
		l.wellLocked()
	}
	l.wake.Sink()
	l.roomLeftLocked(l.stream.now())
}

// unansweredLocked waits for a target that can't be asked. After a while the lane gives its memory to those who can send.
func (l *Lane) unansweredLocked(f *route.Fault) {
	o := &l.out
	o.fault, o.doubt = f, time.Time{}
	if f.Code == codeLogLong {
		o.failures = max(o.failures, 1) // however often: how many tries are left to see more in the log is counted by them
	} else {
		o.failures++
	}
	l.pos.lastError = f.Error()
	if f.Class == route.Refused && o.askLog && !o.noLog {
		o.askLog, o.noLog = false, true // what the broker remembers may do
	} else if f.Class == route.Refused {
		if o.askLog {
			f = &route.Fault{Class: f.Class, Code: f.Code, Err: fmt.Errorf("the target's log must be read, for which READ on the topic is needed: %w", f)}
		}
		l.haltLocked(f)
		return
	}
	if l.stream.now().Sub(o.since) > l.stream.cfg.HoldFor && l.in.held > minFetch {
		l.resetLocked()
	}
	l.retryLocked(0, 20*time.Millisecond)
}

func (l *Lane) hintedLocked(h offsets.Hint) {
	o := &l.out
	c := &l.pos.checkpoint
	log := o.askLog
	o.askLog, o.heard = false, o.askedAt
	if h.Known {
		o.stamp = h.Timestamp
	}
	if o.holed && (!h.Known || h.Epoch != c.ProducerEpoch) {
		l.resetLocked() // what a trailing lane has dropped is stored only as long as the target says so
	}
	switch ours := c.TargetTopicID; {
	case h.TopicID != ours && !h.TopicID.IsZero() && !ours.IsZero():
		l.doubtLocked("INCONSISTENT_TOPIC_ID", fmt.Sprintf("the target topic was made anew: its id is %s, the checkpoint's %s", h.TopicID, ours))
	case h.Known && h.Epoch == c.ProducerEpoch:
		l.standsLocked(h)
	case h.Known && h.Epoch > c.ProducerEpoch:
		l.pos.doubted = true
		l.doubtLocked(codeOtherEpoch, fmt.Sprintf("epoch %d was begun by another owner, ours is %d", h.Epoch, c.ProducerEpoch))
	case log:
		l.unknownLocked(h)
	case !c.Opened && c.Sequence == 0 && h.End == c.TargetOffset:
		o.walkTo = c.Sequence // nothing was ever stored
		l.certifyLocked(o.queue.head)
	default:
		o.askLog = true
	}
}

// unknownLocked decides when neither the broker's producer state nor the log from the checkpoint on knows of our id.
func (l *Lane) unknownLocked(h offsets.Hint) {
	c := &l.pos.checkpoint
	switch {
	case h.End < c.TargetOffset:
		l.doubtLocked("TARGET_LOST", fmt.Sprintf("the target ends at %d, %d was acknowledged", h.End, c.TargetOffset))
	case c.Opened && h.Replaced:
		l.doubtLocked("TARGET_LOST", fmt.Sprintf("the target's record at %d is not the one that was acknowledged", c.TargetOffset-1))
	case c.TargetOffset < 0 && l.knownLocked():
		l.doubtLocked("TARGET_LOST", "the target does not know our producer id any more")
	default:
		if c.Opened && h.Start > c.TargetOffset && c.TargetOffset >= 0 {
			l.emit(events.Of(l.plan.Source, events.DuplicatesPossible, events.Warning,
				"the target forgot our producer id and has deleted the records after the checkpoint: what was in flight may be stored twice").
				Range(c.SourceOffset, c.SourceOffset))
		}
		l.out.walkTo = c.Sequence // the log shows nothing beyond the checkpoint
		l.certifyLocked(l.out.queue.head)
	}
}

// doubtLocked asks again: no single answer proves that the target has lost something, or that it is another's.
func (l *Lane) doubtLocked(code, why string) {
	o := &l.out
	now := l.stream.now()
	o.failures++
	o.fault = &route.Fault{Class: route.Order, Code: code, Err: fmt.Errorf("%s (asked %d times)", why, o.failures)}
	l.pos.lastError = o.fault.Error()
	if o.doubt.IsZero() || now.Sub(o.doubted) > doubtFor/2 {
		o.doubt = now // the first time, or this process slept
	}
	o.doubted = now
	if now.Sub(o.doubt) < doubtFor {
		l.retryLocked(0, 50*time.Millisecond)
		return
	}
	o.doubt = time.Time{}
	if c := &l.pos.checkpoint; !l.pos.changed { // once, not at each retry
		l.pos.changed = true
		message := "the target does not hold what it acknowledged"
		if code == codeOtherEpoch {
			message = "another owner has begun a newer epoch at the target, and no store of ours knows of it"
		}
		l.emit(events.Of(l.plan.Source, events.TargetChanged, events.Error, message).Range(c.SourceOffset, c.SourceOffset).Because(why))
	}
	if cause := l.plan.On.lost(); code != codeOtherEpoch && cause != 0 {
		l.anewLocked(Anew{Cause: cause, Why: why})
	}
	l.haltLocked(o.fault)
}

// haltLocked stops sending until Retry. The lane's memory serves others meanwhile; the source still has what it held.
func (l *Lane) haltLocked(f *route.Fault) {
	l.enterLocked(halted)
	l.haltedLocked(f)
	l.backlogLocked(false)
	l.resetLocked()
}

// knownLocked says that every log that can be elected knows our id, because a batch of it was acknowledged with acks=all not long ago.
func (l *Lane) knownLocked() bool {
	c := &l.pos.checkpoint
	return c.Opened && !l.silentSinceLocked(c.AckedAt) && !l.agedLocked(l.out.stamp)
}

// silentSinceLocked says that the target may have forgotten the id when it was last heard of then.
func (l *Lane) silentSinceLocked(then time.Time) bool {
	past := l.sinceLocked(then)
	return l.plan.IDExpiration > 0 && (past > l.plan.IDExpiration/2 || past < -time.Minute) // a time to come says nothing
}

// sinceLocked is how much time has passed. A machine that was asleep has not counted that time, and a clock that was set back has taken it off: by
// whichever of the two clocks more time has passed, it has.
func (l *Lane) sinceLocked(then time.Time) time.Duration {
	now := l.stream.now()
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// agedLocked says that the target may forget an id with that last timestamp, in ms, at any time, however new the batch is: brokers compare the
// timestamp with their clock (ProducerStateManager.isProducerExpired), which is what old records that are copied bring along. A timestamp that is
// not known, or that records don't have, is as old as can be.
func (l *Lane) agedLocked(stamp int64) bool {
	return l.plan.KeepAppendTime && l.plan.IDExpiration > 0 && l.stream.now().Sub(time.UnixMilli(stamp)) > l.plan.IDExpiration/2
}

// standsLocked goes on from the sequence that follows the target's last record of ours.
func (l *Lane) standsLocked(h offsets.Hint) {
	o := &l.out
	next := offsets.Plus(h.Last, 1)
	d := offsets.Ahead(l.pos.checkpoint.Sequence, next)
	if d < 0 {
		l.doubtLocked("TARGET_LOST", fmt.Sprintf("the target ends at sequence %d, %d was acknowledged", next, l.pos.checkpoint.Sequence))
		return
	}
	o.doubt = time.Time{}
	if next != o.walkTo {
		o.walkTo, o.repeated = next, false
	}
	o.bounds = -1
	o.tail = tail{stamp: h.Timestamp, mark: h.LastRecord, read: h.Read, lost: h.Read && h.First < 0, end: h.After}
	if h.Forgotten || h.After > 0 && l.agedLocked(h.Timestamp) { // or forgotten before a repeat comes
		o.repeated = true
		o.tail.after = h.After
	} else if h.Read {
		o.bounds = h.First
	}
	if l.trailsLocked() {
		return
	}
	if d == 0 {
		l.certifyLocked(o.queue.head)
		return
	}
	if !h.Forgotten && (o.repeated || !l.knownLocked()) && !l.provenLocked(h) {
		return
	}
	l.enterLocked(walking)
	l.walkLocked()
}

// provenLocked says whether the lane may go on behind what the target has, although the id is perhaps not known everywhere or the last stored
// batch was refused. What one log has of an id that others don't know may be lost with that log, and a leader that does not know the id would
// take the batch behind it and make the loss final. So the log must show that it is replicated, and with which boundaries.
func (l *Lane) provenLocked(h offsets.Hint) bool {
	o := &l.out
	switch {
	case h.Read && h.First >= 0:
		return true
	case h.Read && o.failures < mostReads:
		l.readAgainLocked()
		return false
	case !h.Read && !o.noLog:
		o.askLog = true
		return false
	case l.pos.checkpoint.Opened || o.repeated:
		return true // the best that can be done without reading
	default:
		l.certifyLocked(o.queue.head) // the first batch again: a repeat, or the opener that it must be
		return false
	}
}

// mostReads bounds how often the log is read in the hope that it shows what the broker says it has appended: it may have been deleted since.
const mostReads = 20

// readAgainLocked waits for what the target has appended of ours to be replicated, and so readable.
func (l *Lane) readAgainLocked() {
	o := &l.out
	o.failures++
	l.pos.lastError = "what the target has of ours is not replicated yet"
	o.askLog = true
	l.retryLocked(0, 20*time.Millisecond)
}

func (l *Lane) certifyLocked(i uint64) {
	l.out.certify, l.out.sent = i, i
	l.enterLocked(certifying)
	l.wake.Sink()
}

// walkLocked looks for the entry to certify with: the first that is not wholly stored, or the last stored one if there is no newer.
// What is stored for certain to the end is dropped while the walk goes on: the source still has it, and the checkpoint still names it.
func (l *Lane) walkLocked() {
	o := &l.out
	q := &o.queue
	last, found := q.head, false
	i := q.head
	for ; i < q.tail; i++ {
		e := q.at(i)
		if e.records == 0 {
			continue
		}
		if offsets.Ahead(e.end(), o.walkTo) < 0 {
			break
		}
		last, found = i, true
	}
	if (i < q.tail || found && o.ready == o.walkTo) && !l.countedLocked(last, i, found) {
		return
	}
	switch {
	case i < q.tail:
		if stored := offsets.Ahead(q.at(i).seq, o.walkTo); stored > 0 && !l.cutLocked(i, i, o.walkTo, q.at(i).end()) {
			return
		}
		l.certifyLocked(i)
	case found && o.ready == o.walkTo && (!o.repeated || q.at(last).seq == o.bounds):
		l.certifyLocked(last)
	case found && o.ready == o.walkTo && o.bounds >= 0:
		l.repeatLocked(last)
	case found && o.ready == o.walkTo && o.tail.after > 0:
		l.shownStoredLocked(last)
	case found:
		l.dropLocked(last)
		o.sent = max(o.sent, q.head)
		l.roomLeftLocked(l.stream.now())
	}
}

// dropLocked drops what lies before the last stored entry: it is not needed any more, but for what may be needed to send that one again.
func (l *Lane) dropLocked(last uint64) {
	o := &l.out
	q := &o.queue
	for q.head < last && (o.bounds < 0 || offsets.Ahead(q.at(q.head).end(), o.bounds) >= 0) {
		o.holed = o.holed || q.at(q.head).records > 0
		l.searchLocked(q.at(q.head))
		l.releaseLocked(q.at(q.head))
		q.pop()
	}
}

// shownStoredLocked moves `acked` past entry last, the newest that there is, of an id that the target has forgotten: to send it again would store it
// again, and the next record, which could certify, may never come. What the log shows below its high watermark is as replicated as what is
// acknowledged with acks=all. The next batch certifies.
func (l *Lane) shownStoredLocked(last uint64) {
	o, c := &l.out, &l.pos.checkpoint
	q := &o.queue
	e := q.at(last)
	l.counts.stored(offsets.Ahead(c.Sequence, o.walkTo))
	c.SourceOffset, c.Sequence, c.LeaderEpoch, c.TargetOffset = e.next, e.end(), e.epoch, o.tail.after
	l.movedLocked()
	for q.head <= last {
		l.releaseLocked(q.at(q.head))
		q.pop()
	}
	o.holed, o.failures = false, 0
	l.certifyLocked(q.head)
	l.trimLocked()
	l.lagLocked(l.stream.now())
	l.wellLocked()
	l.roomLeftLocked(l.stream.now())
}

// repeatLocked certifies with the last stored batch as an earlier owner with other boundaries has sent it: from o.bounds to the end of
// entry last. A broker tells a repeat by first and last sequence.
func (l *Lane) repeatLocked(last uint64) {
	o := &l.out
	q := &o.queue
	first := last
	for first > q.head && offsets.Ahead(o.bounds, q.at(first).seq) > 0 {
		first--
	}
	if offsets.Ahead(q.at(first).seq, o.bounds) < 0 || !l.cutLocked(first, last, o.bounds, o.walkTo) {
		return // it begins before the checkpoint, so that only the next record can certify
	}
	for i := first; i < last; i++ { // what has moved to the last one counts there
		e := q.at(i)
		e.records = max(0, min(e.records, int32(offsets.Ahead(e.seq, o.bounds))))
	}
	l.certifyLocked(last)
}

// cutLocked makes entry last a batch of the records with sequences from to, not including, to, out of entries first to last. It halts the
// lane if they can't be decoded.
func (l *Lane) cutLocked(first, last uint64, from, to int32) bool {
	q := &l.out.queue
	var in []batch.Batch
	for i := first; i <= last; i++ {
		if e := q.at(i); e.records > 0 {
			in = append(in, e.batch)
		}
	}
	seq, n := q.at(first).seq, int32(offsets.Ahead(from, to))
	var w batch.Rewriter
	pieces, err := w.Rewrite(in, batch.Options{Map: func(*batch.Record) (batch.Verdict, error) {
		at := offsets.Ahead(from, seq)
		seq = offsets.Plus(seq, 1)
		if at < 0 || at >= int64(n) {
			return batch.Drop, nil
		}
		return batch.Keep, nil
	}})
	e := q.at(last)
	if err == nil && (len(pieces) != 1 || pieces[0].Batch.Records() != n) {
		err = fmt.Errorf("%d records became something else", n)
	}
	if err != nil {
		l.haltLocked(&route.Fault{Class: route.Corrupt, Code: "CORRUPT_MESSAGE", Err: fmt.Errorf("cut batch at source offset %d: %w", e.first, err)})
		return false
	}
	l.releaseLocked(e)
	e.alone = false // what first was is not what it is now
	e.batch, e.raw, e.charged = pieces[0].Batch, false, int64(len(pieces[0].Batch))
	e.seq, e.records = from, n
	l.in.held += e.charged
	l.stream.budget().Force(e.charged)
	c := &l.pos.checkpoint
	e.batch.Patch(batch.Producer{ID: c.ProducerID, Epoch: c.ProducerEpoch, Sequence: from})
	l.out.holed, l.out.cut = true, true // some of what follows the checkpoint stands in no entry of its own any more
	return true
}
