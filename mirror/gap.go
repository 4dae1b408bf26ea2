package mirror

import (
	"fmt"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// A gap is a range of offsets that the source deleted before the lane read it. Nobody can bring its records back, but it also takes away what
// sequences are counted by: after a restart nobody could tell how many of its records had been forwarded, and a walk over the records behind it
// would take new ones for stored ones. So a gap is a barrier: what lies before it is acknowledged first, then the checkpoint behind it is stored,
// then reading goes on.

// codeOutOfRange is the protocol's name for a position outside the log.
const codeOutOfRange = "OFFSET_OUT_OF_RANGE"

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
	l.emit(events.Of(src, events.SourceTruncated, events.Error, "records were deleted at the source before they were copied").Range(first, last))
	l.emit(events.Of(src, events.RangeSkipped, events.Error, "went on at the source's first record").Range(first, last).Because("source_truncated"))
	l.passLocked()
}

// deletedLocked halts before a gap: an operator shall say what becomes of it. What was read before it goes on.
func (l *Lane) deletedLocked(x route.Extent) {
	first, last := l.in.position, x.Start-1
	f := &route.Fault{Class: route.SourceChanged, Code: codeOutOfRange, Extent: x, Err: fmt.Errorf( //nolint:err113 // only ever shown
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
	if l.in.gap == 0 || l.in.handled != l.in.position || o.flying.len() > 0 {
		return
	}
	stored, lost := offsets.Ahead(o.ready, o.walkTo), int64(l.in.gap-l.in.position)
	switch {
	case o.phase == walking && stored >= 0 && !l.shownLocked():
		return
	case o.phase == walking && stored >= 0:
		// The target has all that was read, and more: that was in the gap. Each of these records had an offset of its own, so it is right to
		// count offsets; where some had none (transactions, compaction, a filter) less is taken for stored than is.
		if stored > 0 {
			l.emit(events.Of(l.plan.Source, events.DuplicatesPossible, events.Warning,
				"the source deleted records that were on their way: if not each offset was a record, some behind them are stored twice").
				Range(l.in.position, l.in.gap-1))
		}
		stored = min(stored, lost)
		next := offsets.Plus(o.ready, int32(stored))
		l.counts.stored(offsets.Ahead(c.Sequence, next))
		c.Sequence = next
	case (o.phase == open || o.phase == certifying) && !o.holed && o.queue.len() == 0:
		stored = 0
	default:
		return
	}
	l.counts.passed(lost, stored)
	l.pos.note = fmt.Sprintf("offsets %d to %d were skipped: %s", l.in.position, l.in.gap-1, events.SourceTruncated)
	c.SourceOffset, c.LeaderEpoch, l.in.unstored = l.in.gap, -1, l.in.gap
	l.movedLocked()
	l.resetLocked()
	if o.phase == walking && c.Sequence == o.walkTo {
		l.certifyLocked(o.queue.head)
	}
	l.stream.urgent.Store(true)
}
