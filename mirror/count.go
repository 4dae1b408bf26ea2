package mirror

import (
	"errors"
	"fmt"
	"io"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Sequences are counted in records. What was stored beyond the checkpoint is found by counting again in what the source gives now, and that is
// right only if the source still has the same records: a cleaner may have taken some away between a crash and the restart, or an unclean
// election may have cut the log, and new records would be taken for stored ones, and lost.

// countedLocked says that the walk may be believed; if not, it has done what is to be done instead. last is the last entry that is wholly
// stored, if one was found, and i the first that is not.
func (l *Lane) countedLocked(last, i uint64, found bool) bool {
	o := &l.out
	q := &o.queue
	if found && !q.at(last).sent.IsZero() {
		return true // it was this lane that sent it, in this form
	}
	end := last
	if i < q.tail && offsets.Ahead(q.at(i).seq, o.walkTo) > 0 {
		end = i
	} else if !found {
		return true // nothing is stored beyond the checkpoint
	}
	e, c := q.at(end), &l.pos.checkpoint
	whole := int64(e.next-c.SourceOffset) == offsets.Ahead(c.Sequence, e.end())
	if whole && e.epoch == c.LeaderEpoch {
		return true // each offset is a record, so none was taken away; all are of one leader's reign, so none was replaced
	}
	// Offsets are missing, as in a compacted or transactional topic or behind a filter, or another leader wrote them. The target's last record
	// must be the one that was counted to.
	if !l.shownLocked() {
		return false
	}
	same, err := l.sameLocked(e)
	switch {
	case err != nil:
		l.haltLocked(&route.Fault{Class: route.Corrupt, Code: "CORRUPT_MESSAGE", Err: fmt.Errorf("look for the target's last record in batch at source offset %d: %w", e.first, err)})
	case !same && whole:
		l.replacedLocked(e)
	case !same:
		l.recountLocked(end)
	}
	return err == nil && same
}

// replacedLocked halts before entry e of a source whose log was cut behind the checkpoint and has grown again: nothing is missing there, and the
// target's last record is not in its place. What the source has lost stands on the target, and which of them is right, nobody here can say.
func (l *Lane) replacedLocked(e *entry) {
	c := &l.pos.checkpoint
	f := &route.Fault{Class: route.SourceChanged, Code: codeDiverged, Err: fmt.Errorf( //nolint:err113 // only ever shown
		"the target holds %d records beyond source offset %d, of which the last is not the one that the source has there in leader epoch %d",
		offsets.Ahead(c.Sequence, l.out.walkTo), c.SourceOffset, e.epoch)}
	l.divergedLocked(c.SourceOffset, f)
	l.supersededLocked(f)
}

// shownLocked says that the target's log was read up to its last batch of ours, which is replicated then, or can't be; if not, it has it read.
func (l *Lane) shownLocked() bool {
	o := &l.out
	switch {
	case o.noLog, o.tail.read && !o.tail.lost:
		return true
	case !o.tail.read:
		l.compareLocked()
		return false
	case o.failures < mostReads:
		l.compareLocked()
		l.readAgainLocked()
		return false
	}
	return true // deleted already, it seems
}

// compareLocked reads the target's log before anything more is believed.
func (l *Lane) compareLocked() {
	o := &l.out
	o.askLog = true
	if o.holed {
		l.resetLocked()
	}
	l.enterLocked(asking)
	l.wake.Sink()
}

// sameLocked says whether the record of entry e that was counted to is the target's last one of ours. Where that can't be read, it must not be
// newer than the target's last batch.
func (l *Lane) sameLocked(e *entry) (same bool, err error) {
	t := &l.out.tail
	nth := offsets.Ahead(e.seq, l.out.walkTo)
	err = l.eachRecordLocked(e.batch, func(n int64, rec *batch.Record) {
		switch {
		case n != nth:
		case t.mark.Digest != 0:
			same = l.looksLikeLocked(rec)
		default:
			same = t.stamp < 0 || !l.plan.KeepAppendTime || rec.Timestamp <= t.stamp
		}
	})
	return same, err
}

// looksLikeLocked says that a record looks like the target's last one of ours.
func (l *Lane) looksLikeLocked(rec *batch.Record) bool {
	m := l.out.tail.mark
	return m.Digest == rec.Digest() && (m.Timestamp == rec.Timestamp || !l.plan.KeepAppendTime)
}

// eachRecordLocked shows the records of a batch, the first with n = 1.
func (l *Lane) eachRecordLocked(b batch.Batch, show func(n int64, rec *batch.Record)) error {
	t := &l.out.tail
	if t.reader == nil {
		t.reader = &batch.Reader{}
	}
	r := t.reader
	if err := r.Reset(b); err != nil {
		return err
	}
	for n := int64(1); ; n++ {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		show(n, rec)
	}
}

// searchLocked notes which records of an entry look like the target's last one.
func (l *Lane) searchLocked(e *entry) {
	t := &l.out.tail
	if t.mark.Digest == 0 || e.records == 0 {
		return
	}
	_ = l.eachRecordLocked(e.batch, func(n int64, rec *batch.Record) { // what can't be decoded is found again where it matters
		if l.looksLikeLocked(rec) {
			t.places++
			t.place = offsets.Plus(e.seq, int32(n))
		}
	})
}

// recountLocked is for a source that no longer has all that was counted once, up to entry end. If the target's last record is still there, all
// after it is new: the count is set right and the walk begins again. Otherwise the partition is started anew, in a new epoch from the
// checkpoint on.
func (l *Lane) recountLocked(end uint64) {
	o, c := &l.out, &l.pos.checkpoint
	for i := o.queue.head; i <= end && i < o.queue.tail; i++ {
		l.searchLocked(o.queue.at(i))
	}
	if t := &o.tail; t.places == 1 && t.place != o.walkTo {
		c.Sequence = offsets.Plus(c.Sequence, int32(offsets.Ahead(t.place, o.walkTo)))
		t.places, l.pos.shifted = 0, true
		l.resetLocked()
		l.enterLocked(walking)
		return
	}
	const why = "the source no longer holds what was counted beyond the checkpoint"
	l.anewLocked(Anew{Cause: Uncounted, Why: why})
	l.enterLocked(halted)
	l.pos.lastError = why + "; a new epoch begins"
	l.resetLocked()
}
