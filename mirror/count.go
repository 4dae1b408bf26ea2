package mirror

import "github.com/causeway-mirror/causeway/offsets"

// Sequences are counted in records. What was stored beyond the checkpoint is found by counting again in what the source gives now, and that is
// right only if the source still has the same records: a cleaner may have taken some away between a crash and the restart, and new records
// would be taken for stored ones, and lost.

// countedLocked says that the walk may be believed. last is the last entry that is wholly stored, if one was found, and i the first that is not.
func (l *Lane) countedLocked(last, i uint64, found bool) bool {
	o, c := &l.out, &l.pos.checkpoint
	q := &o.queue
	if found && !q.at(last).sent.IsZero() {
		return true // it was this lane that sent it, in this form
	}
	// Each offset is a record: nothing can have been taken away.
	next, seq := c.SourceOffset, c.Sequence
	if found {
		next, seq = q.at(last).next, q.at(last).end()
	}
	inside := i < q.tail && offsets.Ahead(q.at(i).seq, o.walkTo) > 0
	if inside {
		next, seq = q.at(i).next, q.at(i).end()
	}
	if int64(next-c.SourceOffset) == offsets.Ahead(c.Sequence, seq) {
		return true
	}
	// Where offsets are missing (a compacted or transactional topic, a filter), the target's last batch must be the one that was counted to. A
	// target that stamps append times does not show it.
	if o.stamp < 0 || !l.plan.KeepAppendTime {
		return true
	}
	// (It may be newer if it was merged of several. What was counted too far is newer than the target's.)
	return found && !inside && q.at(last).batch.MaxTimestamp() <= o.stamp
}

// recountLocked gives up: the partition is started anew, in a new epoch from the checkpoint on.
func (l *Lane) recountLocked() {
	l.out.recount = true
	l.enterLocked(halted)
	l.pos.lastError = "the source no longer holds what was counted beyond the checkpoint; a new epoch begins"
	l.resetLocked()
}
