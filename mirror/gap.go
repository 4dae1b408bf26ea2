package mirror

import (
	"fmt"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// A gap is a range of offsets that the source deleted before the lane read it. Nobody can bring its records back, but it also takes away what
// sequences are counted by: an owner that has read its records counts them, and one that comes later can't. Within one epoch each would take the
// other's records for its own. So a gap is a barrier: what lies before it is acknowledged first, then the partition is started anew behind it, in a
// new epoch, by whoever stores its checkpoints (docs/adr/013).

// CodeOutOfRange is the protocol's name for a position outside the log.
const CodeOutOfRange = "OFFSET_OUT_OF_RANGE"

// codeDiverged is the fetcher's name for a source whose log is not the one that was read (KIP-320).
const codeDiverged = "DIVERGING_EPOCH"

// truncatedLocked stops at a gap. The events say which records are missing.
func (l *Lane) truncatedLocked(x route.Extent) {
	first, last := l.in.position, x.Start-1
	l.in.extent = x
	src := l.plan.Source
	if l.plan.On.Truncated == Halt {
		l.deletedLocked(x)
		return
	}
	l.in.gap = x.Start
	if in := &l.in; x.Start > in.missed.to || first < in.missed.from { // it may be found more than once, and with less before it than was read
		in.missed.from, in.missed.to = first, x.Start
		l.emit(events.Of(src, events.SourceTruncated, events.Error, "records were deleted at the source before they were copied").Range(first, last))
		l.emit(events.Of(src, events.RangeSkipped, events.Error, "went on at the source's first record").Range(first, last).Because("source_truncated"))
	}
	l.passLocked()
}

// deletedLocked halts before a gap: an operator shall say what becomes of it. What was read before it goes on.
func (l *Lane) deletedLocked(x route.Extent) {
	first, last := l.in.position, x.Start-1
	f := &route.Fault{Class: route.SourceChanged, Code: CodeOutOfRange, Extent: x, Err: fmt.Errorf( //nolint:err113 // only ever shown
		"the source deleted the offsets %d to %d before they were copied, and truncated is %s: reset the position to go on", first, last, Halt)}
	if !l.pos.halted {
		l.emit(events.Of(l.plan.Source, events.SourceTruncated, events.Error, "records were deleted at the source before they were copied").Range(first, last))
	}
	l.in.fault = f
	l.haltedLocked(f)
}

// passLocked goes on behind a gap if it is known what the target has of what lies before it. Where that is more than was acknowledged, the
// target's log must show that it is replicated: no batch will be sent that could prove it, and what the lane still holds the source has no more.
func (l *Lane) passLocked() {
	o, c := &l.out, &l.pos.checkpoint
	if l.in.gap == 0 || l.pos.anew.Cause != 0 || l.in.handled != l.in.position || o.flying.len() > 0 {
		return
	}
	stored, lost := offsets.Ahead(o.ready, o.walkTo), int64(l.in.gap-l.in.position)
	var gap Anew
	switch {
	case o.phase == walking && stored >= 0 && !l.shownLocked():
		return
	case o.phase == walking && stored > lost:
		l.countOverLocked(lost)
		return
	case o.phase == walking && stored >= 0: // the target has all that was read
		l.beyondLocked(stored)
		gap = Anew{To: l.in.gap, Lost: lost - stored, End: o.tail.end}
		l.counts.stored(offsets.Ahead(c.Sequence, o.walkTo))
		c.SourceOffset, c.LeaderEpoch, c.Sequence, l.pos.shifted = l.in.position, l.in.epoch, o.ready, true
		l.movedLocked()
		l.resetLocked()
		l.in.gap = gap.To // nothing is read from here on
	case (o.phase == open || o.phase == certifying) && !o.holed && o.queue.len() == 0 && c.SourceOffset == l.in.position:
		gap = Anew{To: l.in.gap, Lost: lost}
	default:
		return
	}
	gap.Cause, gap.At, gap.Why = Gone, c.SourceOffset, skipped(c.SourceOffset, gap.To)
	l.anewLocked(gap)
}

// skipped is what an operator should know of a partition that has passed a gap.
func skipped(from, to route.Offset) string {
	return fmt.Sprintf("offsets %d to %d were skipped: %s", from, to-1, events.SourceTruncated)
}

// beyondLocked tells of records that the target has of a gap, or of what lies behind it.
func (l *Lane) beyondLocked(stored int64) {
	if stored > 0 {
		l.emit(events.Of(l.plan.Source, events.DuplicatesPossible, events.Warning,
			"the source deleted records that were on their way: if not each offset was a record, some behind them are stored twice").
			Range(l.in.position, l.in.gap-1))
	}
}

// countOverLocked goes on behind a gap of which the target has all records, and more: those the source still has, and they must not be sent again. So
// it is walked on, in the same epoch. Each of the gap's records had an offset of its own, so it is right to count offsets, and whoever has read
// them counts the same; where some had none (transactions, compaction, a filter) less is taken for stored than is.
func (l *Lane) countOverLocked(lost int64) {
	o, c := &l.out, &l.pos.checkpoint
	l.beyondLocked(lost)
	next := offsets.Plus(o.ready, int32(lost))
	l.counts.stored(offsets.Ahead(c.Sequence, next))
	c.Sequence, l.pos.shifted = next, true
	l.pos.note = skipped(l.in.position, l.in.gap)
	c.SourceOffset, c.LeaderEpoch, l.in.unstored = l.in.gap, -1, l.in.gap
	l.movedLocked()
	l.resetLocked()
	l.stream.urgent.Store(true)
}

// intrudedLocked tells that something was stored at the target while a new epoch began, before its first batch: by another writer, or by an owner
// of the old epoch who had read what is gone now, and what follows it. Where it began behind a gap shows in the checkpoint, whoever has begun it: its
// leader epoch is not known. Where it began behind what an earlier epoch left unacknowledged, it has no acknowledgement.
func (l *Lane) intrudedLocked(e *entry, base route.Offset) {
	c := &l.pos.checkpoint
	if l.plan.Shared || l.plan.Sieve != nil || c.Opened || c.ProducerEpoch == 0 || c.LeaderEpoch >= 0 && !c.AckedAt.IsZero() || c.TargetOffset < 0 {
		return
	}
	if int64(base-c.TargetOffset) > offsets.Ahead(c.Sequence, e.seq) {
		l.emit(events.Of(l.plan.Source, events.DuplicatesPossible, events.Warning,
			"something was stored at the target while a new epoch began: if that was another owner of the partition, some records are there twice").
			Range(c.SourceOffset, c.SourceOffset))
	}
}
