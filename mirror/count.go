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
// right only if the source still has the same records: a cleaner may have taken some away between a crash and the restart, and new records
// would be taken for stored ones, and lost.

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
	if int64(e.next-c.SourceOffset) == offsets.Ahead(c.Sequence, e.end()) {
		return true // each offset is a record: none can have been taken away
	}
	// Offsets are missing, as in a compacted or transactional topic or behind a filter. The target's last record must be the one that was
	// counted to.
	if !o.tail.read && !o.noLog {
		l.compareLocked()
		return false
	}
	if o.tail.lost && o.failures < mostReads {
		l.compareLocked()
		l.readAgainLocked()
		return false
	}
	same, err := l.sameLocked(e)
	switch {
	case err != nil:
		l.haltLocked(&route.Fault{Class: route.Corrupt, Code: "CORRUPT_MESSAGE", Err: fmt.Errorf("look for the target's last record in batch at source offset %d: %w", e.first, err)})
	case !same:
		l.recountLocked()
	}
	return err == nil && same
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
func (l *Lane) sameLocked(e *entry) (bool, error) {
	t := &l.out.tail
	nth := offsets.Ahead(e.seq, l.out.walkTo)
	var r batch.Reader
	if err := r.Reset(e.batch); err != nil {
		return false, err
	}
	for n := int64(1); ; n++ {
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case n < nth:
		case t.mark.Digest != 0:
			return t.mark.Digest == rec.Digest() && (t.mark.Timestamp == rec.Timestamp || !l.plan.KeepAppendTime), nil
		default:
			return t.stamp < 0 || !l.plan.KeepAppendTime || rec.Timestamp <= t.stamp, nil
		}
	}
}

// recountLocked gives up: the partition is started anew, in a new epoch from the checkpoint on.
func (l *Lane) recountLocked() {
	l.out.recount = true
	l.enterLocked(halted)
	l.pos.lastError = "the source no longer holds what was counted beyond the checkpoint; a new epoch begins"
	l.resetLocked()
}
