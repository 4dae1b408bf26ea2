package mirror

import (
	"fmt"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// codeForeign is our name for a target partition to which somebody else writes.
const codeForeign = "FOREIGN_WRITER"

// foreignLocked notices by the target offset of entry i that something stands between what was acknowledged and it that is not ours, and tells it once
// a lane. Where the epoch is not opened yet it may be ours, of an earlier one.
func (l *Lane) foreignLocked(i uint64, base route.Offset) *route.Fault {
	o, c := &l.out, &l.pos.checkpoint
	if i < o.queue.head || l.plan.Shared || l.plan.Sieve != nil || l.pos.shifted || !c.Opened || c.TargetOffset < 0 {
		return nil
	}
	expected := c.TargetOffset + route.Offset(offsets.Ahead(c.Sequence, o.queue.at(i).seq))
	if base <= expected {
		return nil
	}
	f := &route.Fault{Class: route.Refused, Code: codeForeign, Err: fmt.Errorf( //nolint:err113 // only ever shown
		"a batch was stored at target offset %d, where %d is next of what this route writes: somebody else writes to %s", base, expected, l.plan.Target)}
	if !l.pos.foreign {
		l.pos.foreign = true
		at := c.SourceOffset
		l.emit(events.Of(l.plan.Source, events.ForeignWriter, events.Warning, "somebody else writes to the target partition").Range(at, at).Because(f.Error()))
	}
	return f
}
