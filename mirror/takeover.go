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

// doubtFor is how long the target must seem to have less than it acknowledged before that is believed: followers that lag, and deposed
// leaders that don't know it yet, say so too.
const doubtFor = time.Minute

// Inquiry is what the sink shall ask about the target now; if it is not due yet, the time to come again.
func (l *Lane) Inquiry() (q offsets.Inquiry, due time.Time) {
	now := l.stream.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.out
	if o.phase != asking || o.inquiring || l.paused || l.closing {
		return q, due
	}
	if now.Before(o.notBefore) {
		return q, o.notBefore
	}
	o.inquiring = true
	c := &l.pos.checkpoint
	q = offsets.Inquiry{Question: offsets.AskProducer, ProducerID: c.ProducerID, ProducerEpoch: c.ProducerEpoch, From: c.TargetOffset}
	if o.askLog {
		q.Question = offsets.AskLog
	}
	return q, due
}

// Hint takes the answer to an Inquiry, or why there is none.
func (l *Lane) Hint(h offsets.Hint, f *route.Fault) {
	l.mu.Lock()
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
	}
	l.wake.Sink()
	l.roomLeftLocked(l.stream.now())
}

// unansweredLocked waits for a target that can't be asked. After a while the lane gives its memory to those who can send.
func (l *Lane) unansweredLocked(f *route.Fault) {
	o := &l.out
	o.fault = f
	o.failures++
	l.pos.lastError = f.Error()
	if f.Class == route.Refused {
		l.enterLocked(halted)
		l.haltedLocked(f)
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
	o.askLog = false
	switch {
	case h.Known && h.Epoch == c.ProducerEpoch:
		l.standsLocked(offsets.Plus(h.Last, 1))
	case h.Known && h.Epoch > c.ProducerEpoch:
		l.doubtLocked("INVALID_PRODUCER_EPOCH", fmt.Sprintf("epoch %d was begun by another owner, ours is %d", h.Epoch, c.ProducerEpoch))
	case log:
		l.unknownLocked(h)
	case !c.Opened && c.Sequence == 0 && h.End == c.TargetOffset:
		l.certifyLocked(o.queue.head) // nothing was ever stored
	default:
		o.askLog = true
	}
}

// unknownLocked decides when neither the broker's producer state nor the log from the checkpoint on knows of our id.
func (l *Lane) unknownLocked(h offsets.Hint) {
	c := &l.pos.checkpoint
	expired := l.plan.IDExpiration > 0 && l.stream.now().Sub(c.AckedAt) > l.plan.IDExpiration/2
	switch {
	case h.End < c.TargetOffset:
		l.doubtLocked("TARGET_LOST", fmt.Sprintf("the target ends at %d, %d was acknowledged", h.End, c.TargetOffset))
	case c.Opened && !expired:
		l.doubtLocked("TARGET_LOST", "the target does not know our producer id any more")
	default:
		if c.Opened && h.Start > c.TargetOffset && c.TargetOffset >= 0 {
			l.emit(events.Of(l.plan.Source, events.DuplicatesPossible, events.Warning,
				"the target forgot our producer id and has deleted the records after the checkpoint: what was in flight may be stored twice").
				Range(c.SourceOffset, c.SourceOffset))
		}
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
	if o.doubt.IsZero() {
		o.doubt = now
	}
	if now.Sub(o.doubt) < doubtFor {
		l.retryLocked(0, 50*time.Millisecond)
		return
	}
	o.doubt = time.Time{}
	c := &l.pos.checkpoint
	l.emit(events.Of(l.plan.Source, events.TargetChanged, events.Error, "the target does not hold what it acknowledged").
		Range(c.SourceOffset, c.SourceOffset).Because(why))
	l.enterLocked(halted)
	l.haltedLocked(o.fault)
}

// standsLocked goes on from the sequence that follows the target's last record of ours.
func (l *Lane) standsLocked(next int32) {
	o := &l.out
	d := offsets.Ahead(l.pos.checkpoint.Sequence, next)
	if d < 0 {
		l.doubtLocked("TARGET_LOST", fmt.Sprintf("the target ends at sequence %d, %d was acknowledged", next, l.pos.checkpoint.Sequence))
		return
	}
	o.doubt = time.Time{}
	if next != o.walkTo {
		o.walkTo, o.repeated = next, false
	}
	if d == 0 {
		l.certifyLocked(o.queue.head)
		return
	}
	l.enterLocked(walking)
	l.walkLocked()
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
	switch {
	case i < q.tail:
		if stored := offsets.Ahead(q.at(i).seq, o.walkTo); stored > 0 {
			if err := l.cropLocked(q.at(i), int32(stored)); err != nil {
				l.in.fault = &route.Fault{Class: route.Corrupt, Code: "CORRUPT_MESSAGE", Err: err}
				l.enterLocked(halted)
				l.haltedLocked(l.in.fault)
				return
			}
		}
		l.certifyLocked(i)
	case found && o.ready == o.walkTo && !o.repeated:
		l.certifyLocked(last)
	case found:
		for q.head < last { // not before the last stored one: it may be needed to certify with
			o.holed = o.holed || q.at(q.head).records > 0
			l.releaseLocked(q.at(q.head))
			q.pop()
		}
		o.sent = max(o.sent, q.head)
		l.roomLeftLocked(l.stream.now())
	}
}

// cropLocked leaves out the first records of an entry, which an earlier owner with other batch boundaries has stored.
func (l *Lane) cropLocked(e *entry, stored int32) error {
	c := &l.pos.checkpoint
	var w batch.Rewriter
	pieces, err := w.Rewrite([]batch.Batch{e.batch}, batch.Options{From: route.Offset(stored)}) // a patched batch begins at 0 and is dense
	if err != nil {
		return fmt.Errorf("crop batch at source offset %d: %w", e.first, err)
	}
	if len(pieces) != 1 || pieces[0].Batch.Records() != e.records-stored {
		return fmt.Errorf("crop batch at source offset %d: %d records became something else", e.first, e.records)
	}
	l.releaseLocked(e)
	e.batch, e.raw = pieces[0].Batch, false
	e.seq, e.records = offsets.Plus(e.seq, stored), e.records-stored
	e.charged = int64(len(e.batch))
	l.in.held += e.charged
	l.stream.budget().Force(e.charged)
	e.batch.Patch(batch.Producer{ID: c.ProducerID, Epoch: c.ProducerEpoch, Sequence: e.seq})
	l.out.holed = true // its head is in no entry any more
	return nil
}
