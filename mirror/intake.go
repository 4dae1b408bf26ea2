package mirror

import (
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

// minFetch is the least that a lane asks for: a broker returns nothing of a partition whose first batch exceeds what is asked, unless it
// is the first in the answer, so asking for less than a usual batch would waste round trips.
const minFetch = 64 << 10

// intake is the lane's side towards the source: what it wants, and what came and was not handled yet.
type intake struct {
	position   route.Offset // next source offset to fetch
	epoch      int32        // the source's leader epoch right before it; -1 when not known
	handled    route.Offset // position after the last entry that the stream took
	passed     int32        // leader epoch right before that
	generation uint32       // grows when the position jumps; answers to an older one are dropped
	entries    []entry
	held       int64 // bytes in the intake and in the queue
	withheld   bool  // Want said no: whoever changes that wakes the source
	fault      *route.Fault
	retried    bool // the fault was set aside, and the source has not answered since
	extent     route.Extent
	asked      time.Time    // when Want last said yes
	gap        route.Offset // the records from position up to it are gone from the source; 0 = none
	missed     span         // the gap that was told last
	unstored   route.Offset // a gap that was passed: nothing behind it is read before the checkpoint there is stored; 0 = none
	unsure     time.Time    // since when it is being found out whether what comes next is another mirror's; zero: it is known
	aside      aside        // what the target has refused
	reigns     []reign      // in order, of those that were read since the lane began
	full, calm time.Time    // since when the target takes nothing, and since when there is nothing for it; as Flow has seen it
}

// span is a range of source offsets, without its end.
type span struct{ from, to route.Offset }

// Want says what the lane would take now: the position with its leader epoch, its generation, and at most how many bytes; 0 bytes = nothing for now, the source
// waker is called when that changes. Called by the source right before a fetch.
func (l *Lane) Want() (at route.Position, generation uint32, maxBytes int32) {
	now := l.stream.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	room := l.roomLocked(now)
	l.in.withheld = room == 0
	if room > 0 {
		l.in.asked = now
	} else {
		l.stirLocked()
	}
	return route.Position{Offset: l.in.position, LeaderEpoch: l.in.epoch}, l.in.generation, int32(room)
}

// roomLocked is how many bytes the lane would take. A lane whose target can't be asked takes nothing beyond what it has: otherwise the
// lanes of one dead broker would fill the memory of all.
func (l *Lane) roomLocked(now time.Time) int64 {
	switch {
	case l.heldLocked(), l.closing, l.in.fault != nil, l.out.phase == halted, l.in.gap > 0, l.in.unstored > 0, !l.in.unsure.IsZero(), l.in.aside.barsAt(l.in.position):
		return 0
	case l.out.phase == asking && l.out.failures > 0 && !l.out.trail.on, l.out.phase == failing:
		return 0
	}
	if most := l.stream.cfg.LaneBatches; most > 0 && len(l.in.entries)+l.out.queue.len() >= most {
		return 0
	}
	due, most := l.dueLocked(now)
	if !due {
		return 0
	}
	limit := l.meter.limit(now, l.stream.cfg.LaneBytes)
	if l.meter.merging {
		limit = max(limit, mergeAhead*int64(l.plan.Merge))
	}
	limit = min(limit, most)
	if l.out.phase == certifying && l.stuckLocked() {
		limit = minFetch // one batch is enough to try with
	}
	room := limit - l.in.held
	if l.in.held > 0 && room < max(limit/4, min(limit/2, worthAsking)) {
		return 0 // many small fetches cost the brokers more than a short wait for more room costs us
	}
	return max(room, minFetch)
}

// roomLeftLocked wakes the source if it was turned away and would not be now.
func (l *Lane) roomLeftLocked(now time.Time) {
	if l.in.withheld && l.roomLocked(now) > 0 {
		l.in.withheld = false
		l.wake.Source()
	}
}

// Append takes what was fetched, in order; next is the position after all that was read, left-out ranges included. Each batch that is
// kept gets a reference of s of its own. Answers to an older generation are dropped.
func (l *Lane) Append(generation uint32, s *slab.Slab, batches []batch.Batch, next route.Position, x route.Extent) {
	now := l.stream.now()
	l.lock()
	defer l.mu.Unlock()
	if generation != l.in.generation || l.closing {
		return
	}
	in := &l.in
	in.extent = x
	if l.unsureLocked(now, batches) {
		l.sourceAnsweredLocked(now)
		return
	}
	bytes, records := int64(0), int64(0)
	for _, b := range batches {
		if b.NextOffset() <= in.position {
			continue // forwarded already: an answer may begin before the position
		}
		if in.aside.barsAt(b.BaseOffset()) {
			break
		}
		l.reignLocked(b.LeaderEpoch(), b.BaseOffset())
		if l.returnedLocked(b) {
			continue
		}
		s.Retain(1)
		end := in.aside.bar(b.NextOffset())
		in.entries = append(in.entries, entry{batch: b, slab: s, first: b.BaseOffset(), next: end, epoch: b.LeaderEpoch(), fetched: now})
		in.position, in.epoch = end, b.LeaderEpoch()
		bytes += int64(len(b))
		records += int64(b.Records())
	}
	for _, p := range l.paces {
		p.took(records, bytes)
	}
	if in.aside.barsAt(next.Offset) {
		next = route.Position{Offset: in.aside.first, LeaderEpoch: -1}
	}
	if next.Offset > in.position {
		in.entries = append(in.entries, entry{first: in.position, next: next.Offset, epoch: next.LeaderEpoch, fetched: now})
		in.position, in.epoch = next.Offset, next.LeaderEpoch
	}
	in.held += bytes
	l.sourceAnsweredLocked(now)
	if bytes > 0 && !in.asked.IsZero() {
		l.meter.fetched(now.Sub(in.asked))
		in.asked = time.Time{}
	}
	l.pendingLocked()
}

// returnedLocked says that a batch is what another mirror brought from where this lane writes to: it counts as read, like those that nobody is to see.
func (l *Lane) returnedLocked(b batch.Batch) bool {
	if l.plan.Sieve == nil {
		return false
	}
	returned, _ := l.plan.Sieve.Copies(b.ProducerID())
	if returned {
		l.counts.returned.Add(float64(b.Records()))
	}
	return returned
}

// unsureLocked says that it must be found out first of some batches whether another mirror brought them. What is not handled yet is read again then:
// whoever leads batches to the lane must see by its generation that it did not take them.
func (l *Lane) unsureLocked(now time.Time, batches []batch.Batch) bool {
	if l.plan.Sieve == nil {
		return false
	}
	var unknown []int64
	bytes, records := int64(0), int64(0)
	for _, b := range batches {
		if _, known := l.plan.Sieve.Copies(b.ProducerID()); !known && !slices.Contains(unknown, b.ProducerID()) {
			unknown = append(unknown, b.ProducerID())
		}
		bytes += int64(len(b))
		records += int64(b.Records())
	}
	if unknown == nil {
		return false
	}
	for _, p := range l.paces {
		p.took(records, bytes) // as if they had been: they will be once more
	}
	l.in.unsure = now
	l.rereadLocked()
	l.plan.Sieve.Ask(unknown, l.sure)
	return true
}

// sure goes on reading.
func (l *Lane) sure() {
	l.lock()
	defer l.mu.Unlock()
	l.in.unsure = time.Time{}
	l.wake.Source()
}

// pendingLocked puts the lane on its stream's list if it has something to handle.
func (l *Lane) pendingLocked() {
	if !l.queued && len(l.in.entries) > 0 {
		l.queued = true
		l.stream.notify(l)
	}
}

// Extent takes news of the source log's ends that came without data.
func (l *Lane) Extent(x route.Extent) {
	now := l.stream.now()
	l.lock()
	defer l.mu.Unlock()
	l.in.extent = x
	l.sourceAnsweredLocked(now)
}

// sourceAnsweredLocked notes what an answer of the source says besides its data: how far behind the lane is, and that a halt is over if it
// was the source's.
func (l *Lane) sourceAnsweredLocked(now time.Time) {
	l.lagLocked(now)
	l.in.retried = false
	if l.pos.stopped {
		l.pos.stopped, l.pos.halted = false, true // what follows tells that it goes on
	}
	l.wellLocked()
}

// wellLocked tells of the end of a halt if nothing is left of it.
func (l *Lane) wellLocked() {
	if l.pos.halted && (l.out.phase == open || l.quietLocked()) {
		l.recoveredLocked()
	}
}

// Fail takes a failure that the source can't mend by itself. The lane stops reading; what it has read goes on.
func (l *Lane) Fail(generation uint32, f *route.Fault) {
	l.lock()
	defer l.mu.Unlock()
	if generation != l.in.generation || l.closing {
		return
	}
	if f.Code == CodeOutOfRange && f.Extent.Start > l.in.position && f.Extent.Start >= 0 {
		l.truncatedLocked(f.Extent)
		return
	}
	if f.Code == codeDiverged || f.Code == CodeOutOfRange {
		l.divergedLocked(l.in.position, f)
		f = l.partLocked(f)
	}
	if f.Class == route.SourceChanged && (f.Code == codeNoTopic || f.Code == codeOtherTopic) {
		l.in.extent = unknownExtent() // it was another topic's
	}
	l.in.fault = f
	if f.Class == route.SourceChanged && f.Code == codeNoTopic {
		l.goneLocked(f)
		return
	}
	l.pos.stopped = false
	l.haltedLocked(f)
}

// ReasonDeleted is why a partition is stopped.
const ReasonDeleted = "the source has no such topic or partition any more"

// goneLocked tells, once, that the source topic was deleted, which f says.
func (l *Lane) goneLocked(f *route.Fault) {
	severity, told := events.Error, l.pos.halted
	if l.plan.On.Deleted == Stop {
		severity, told = events.Warning, l.pos.stopped
	}
	if !told {
		l.emit(events.Of(l.plan.Source, events.TopicDeleted, severity, ReasonDeleted).Because(f.Error()))
	}
	if l.plan.On.Deleted == Stop {
		l.pos.stopped = true
		return
	}
	l.haltedLocked(f)
}

// divergedLocked tells, once a halt, that the source's log is not the one that was read, which shows at an offset.
func (l *Lane) divergedLocked(at route.Offset, f *route.Fault) {
	if !l.pos.halted {
		l.emit(events.Of(l.plan.Source, events.SourceDiverged, events.Error, "the source no longer has what was read of it").Range(at, at).Because(f.Error()))
	}
}

func unknownExtent() route.Extent {
	return route.Extent{Start: route.NoOffset, LastStable: route.NoOffset, End: route.NoOffset}
}

// codeNoTopic is the protocol's name for a topic or partition that is not there; the source says so only when it has lasted.
const codeNoTopic = "UNKNOWN_TOPIC_OR_PARTITION"

// haltedLocked tells, once, that the partition stands still.
func (l *Lane) haltedLocked(f *route.Fault) {
	l.pos.lastError = f.Error()
	if l.pos.halted {
		return
	}
	l.pos.halted = true
	at := l.pos.checkpoint.SourceOffset
	l.emit(events.Of(l.plan.Source, events.PartitionHalted, events.Error, "the partition stands still").Range(at, at).Because(f.Error()))
}

// recoveredLocked tells, once, that it goes on. Where the source is at fault its answer alone says so.
func (l *Lane) recoveredLocked() {
	if l.in.fault != nil || l.in.retried {
		return
	}
	if l.pos.halted {
		l.pos.halted = false
		l.emit(events.Of(l.plan.Source, events.PartitionRecovered, events.Info, "the partition goes on"))
	}
	l.pos.lastError = ""
}

// unmendedLocked says that a halt has a reason which time alone can't have mended.
func (l *Lane) unmendedLocked() bool {
	f := l.out.fault
	return l.refusedLocked() && l.out.excess > 0 || f != nil && f.Code == codeForeign
}

// Retry ends a halt, by an operator's wish.
func (l *Lane) Retry() { l.retry(true) }

// retryByTime ends a halt, unless nothing has changed for certain: a batch above the limit of which we know is not sent again for nothing. Whether the
// limit is another one by now is asked without it.
func (l *Lane) retryByTime() { l.retry(false) }

func (l *Lane) retry(asked bool) {
	l.lock()
	defer l.mu.Unlock()
	if l.closing {
		return
	}
	if l.in.fault != nil {
		l.in.fault, l.in.retried = nil, true
		l.wake.Source()
	}
	if l.out.phase == halted && l.pos.anew.Cause == 0 && (asked || !l.unmendedLocked()) {
		l.out.phase = asking
		l.wake.Sink()
	}
}
