package mirror

import (
	"fmt"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// A walk may come to the end of the source before it comes to what the target holds: a cleaner has taken away so much since that was stored, or an
// unclean election has cut the log. Until the source has as many new records as are missing, the walk would wait, and forward none of them.

// shortLocked says that the walk has come to the end of the source that is known, and how many records of the target it has not found.
func (l *Lane) shortLocked() (records int64, short bool) {
	o, end := &l.out, l.endLocked()
	if o.phase != walking || l.in.fault != nil || l.in.gap > 0 || l.in.handled != l.in.position || end < 0 || l.in.position < end {
		return 0, false
	}
	records = offsets.Ahead(o.ready, o.walkTo)
	return records, records > 0
}

// Short says that all of the source that the lane knows of was read, and the target holds more. What the lane knows of the source may be old, so
// whoever can shall ask where the source's log ends, and tell it by Ends.
func (l *Lane) Short() bool {
	now := l.stream.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.out
	_, short := l.shortLocked()
	if short && (o.short.IsZero() || o.shortAt != l.in.position) {
		o.short, o.shortAt = now, l.in.position
	}
	return short
}

// Ends takes the answer to Short: where the source's log ended after it was asked. A new leader may know for a while less than is replicated, so
// nothing is believed at once.
func (l *Lane) Ends(end route.Offset) {
	now := l.stream.now()
	l.lock()
	defer l.mu.Unlock()
	o, c := &l.out, &l.pos.checkpoint
	records, short := l.shortLocked()
	switch {
	case !short: // it is being asked about again
	case end != l.in.position:
		o.short = now
	case now.Sub(o.short) < doubtFor || !l.shownLocked():
	case int64(end-c.SourceOffset) == offsets.Ahead(c.Sequence, o.ready): // nothing is missing, it is cut
		f := &route.Fault{Class: route.SourceChanged, Code: codeDiverged, Err: fmt.Errorf( //nolint:err113 // only ever shown
			"the source ends at %d, and the target holds %d records of it that were behind that", end, records)}
		l.divergedLocked(end, f)
		l.supersededLocked(f)
	default:
		l.recountLocked(o.queue.tail)
	}
}
