package mirror

import (
	"strconv"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// State says in one word what a partition does.
type State string

// The states of a partition on a worker.
const (
	Starting  State = "starting"  // asks the target what it holds
	Mirroring State = "mirroring" // copies, or has nothing to copy
	Paused    State = "paused"    // by an operator
	Suspended State = "suspended" // until it is known again whose the partition is
	Draining  State = "draining"  // is about to leave this worker
	Halted    State = "halted"    // needs something; it is tried again by itself
	Degraded  State = "degraded"  // worked before, and waits for its target or source
	Stopped   State = "stopped"   // its source topic was deleted, and by policy that is no trouble
)

// Status is a partition as it is now. Offsets are NoOffset when they are not known.
type Status struct {
	Source, Target route.Partition
	SourceTopicID  route.TopicID // that the offsets are of; zero when unknown
	State          State
	Reason         string
	Extent         route.Extent // of the source's log
	Position       route.Offset // next to fetch
	Acked          route.Offset // everything before it is on the target
	Committed      route.Offset // everything before it is known to be on the target after a restart
	TargetEnd      route.Offset // after our last record
	LagRecords     int64        // -1 until the source's end is known
	LagBytes       int64        // about, by the mean of what was copied here; -1 until that is known
	LagSeconds     float64
	Uncommitted    time.Duration // since when an acknowledged position waits for its commit
	BytesPerSecond float64
	Records, Bytes int64 // acknowledged since the lane began
	Raw            bool  // how the last batch went
	LastError      string
}

// Status describes the lane.
func (l *Lane) Status() Status {
	now := l.stream.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.pos.checkpoint
	s := Status{
		Source: l.plan.Source, Target: l.plan.Target, SourceTopicID: c.SourceTopicID, Extent: l.in.extent, Position: l.in.position, Acked: c.SourceOffset,
		Committed: l.pos.committed, TargetEnd: c.TargetOffset, LagRecords: -1, LastError: l.pos.lastError,
		Records: l.meter.records, Bytes: l.meter.bytes, Raw: l.meter.lastRaw || l.meter.bytes == 0,
	}
	s.State, s.Reason = l.stateLocked()
	l.meter.roll(now)
	s.BytesPerSecond = l.meter.rate
	if end := l.endLocked(); end >= 0 {
		s.LagRecords = max(int64(end-c.SourceOffset), 0)
	}
	s.LagBytes = lagBytes(s)
	l.lagLocked(now)
	if s.LagRecords > 0 && !l.pos.behindSince.IsZero() {
		s.LagSeconds = now.Sub(l.pos.behindSince).Seconds()
	}
	if !l.pos.unstored.IsZero() && !c.AckedAt.IsZero() {
		s.Uncommitted = now.Sub(l.pos.unstored)
	}
	return s
}

// lagBytes is what the records that lack take as batches on the wire, if they are like those that were copied since the lane began. No broker tells it.
func lagBytes(s Status) int64 {
	switch {
	case s.LagRecords == 0:
		return 0
	case s.LagRecords < 0 || s.Records == 0:
		return -1
	default:
		return int64(float64(s.LagRecords) * float64(s.Bytes) / float64(s.Records))
	}
}

// endLocked is where the source's log ends for us: the last stable offset, since what lies behind it may still be aborted, unless that is copied too.
func (l *Lane) endLocked() route.Offset {
	if l.in.extent.LastStable >= 0 && !l.stream.cfg.ReadUncommitted {
		return l.in.extent.LastStable
	}
	return l.in.extent.End
}

// lagLocked notes since when the lane is behind.
func (l *Lane) lagLocked(now time.Time) {
	switch behind := l.endLocked() > l.pos.checkpoint.SourceOffset; {
	case !behind:
		l.pos.behindSince = time.Time{}
	case l.pos.behindSince.IsZero():
		l.pos.behindSince = now
	}
}

// State is what Status says of it, with the reason.
func (l *Lane) State() (State, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stateLocked()
}

func (l *Lane) stateLocked() (State, string) {
	o := &l.out
	switch {
	case l.closing:
		return Draining, ""
	case l.suspended:
		return Suspended, errSuspended.Error()
	case l.paused:
		return Paused, "by an operator"
	case l.pos.stopped:
		return Stopped, ReasonDeleted
	case l.in.fault != nil:
		return Halted, l.in.fault.Error()
	case l.in.retried: // until the source answers
		return Halted, l.pos.lastError
	}
	why := l.pos.lastError
	if since := l.in.unsure; !since.IsZero() && l.stream.now().Sub(since) > unsureFor && o.phase != halted {
		return Degraded, "it can't be found out whether what comes next was brought by another mirror: the markers on the source can't be read"
	}
	if o.trail.level && o.phase != halted && (o.phase == asking || !o.trail.joined) && o.failures <= 1 {
		return Mirroring, whyTrailing
	}
	switch o.phase {
	case open:
		return Mirroring, l.pos.note
	case certifying:
		if l.quietLocked() {
			return Mirroring, l.pos.note
		}
	case halted:
		return Halted, why
	case walking:
		if o.repeated {
			return Starting, "uncertified: the last batch on the target has other boundaries; waiting for the next record"
		}
		if n, short := l.shortLocked(); short {
			return Starting, "the target holds " + strconv.FormatInt(n, 10) + " records beyond the checkpoint that the source does not show; it is asked again"
		}
	case asking, failing:
	}
	if l.meter.records > 0 || o.failures > 2 {
		return Degraded, why
	}
	return Starting, why
}

// unsureFor is how long it may take to find out what another mirror brought, before that is trouble.
const unsureFor = 10 * time.Second

// quietLocked says that everything is known of the target, and there is nothing to send. A lane that tries in vain may have nothing in between, too:
// its memory served others.
func (l *Lane) quietLocked() bool {
	o := &l.out
	return o.phase == certifying && o.certify >= o.queue.tail && (o.failures == 0 || l.endLocked() <= l.pos.checkpoint.SourceOffset)
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// Records counts what was acknowledged since the start, also on lanes that have left.
func (m *Mirror) Records() (n int64) {
	for _, s := range m.streams {
		n += s.records.Load()
	}
	return n
}

// Load is how busy a worker is, in figures that older tools know.
type Load struct {
	Queued   []int // batches that each stream's lanes hold
	Unstored int64 // checkpoints that commits have failed to store, ever
}

// Load counts.
func (m *Mirror) Load() Load {
	l := Load{Queued: make([]int, len(m.streams))}
	for i, s := range m.streams {
		l.Unstored += s.unstored.Load()
		for _, lane := range s.list() {
			lane.mu.Lock()
			l.Queued[i] += len(lane.in.entries) + lane.out.queue.len()
			lane.mu.Unlock()
		}
	}
	return l
}
