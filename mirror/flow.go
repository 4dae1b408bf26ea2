package mirror

import (
	"context"
	"fmt"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Flow is what stands behind a lane's wishes, for who keeps what the lane can't take.
type Flow struct {
	Acked  route.Position // everything before it is on the target
	Stored route.Offset   // where a restart would go on
	Held   bool           // the lane neither fetches nor sends, by somebody's wish
	// Stalled is since when the lane takes nothing because its target does not. Zero: it does, or the target is not the reason.
	Stalled time.Time
	Free    int // percent of what the lane may hold
}

// calmFor is how long a lane must have had nothing to send for an earlier failure to count no more.
const calmFor = time.Second

// Flow describes the lane. It is asked from time to time, and from that it knows since when the lane stands.
func (l *Lane) Flow() Flow {
	now := l.stream.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.pos.checkpoint
	limit := l.meter.limit(now, l.stream.cfg.LaneBytes)
	f := Flow{
		Acked: route.Position{Offset: c.SourceOffset, LeaderEpoch: c.LeaderEpoch}, Stored: l.pos.committed, Held: l.heldLocked() || l.closing,
		Free: int(max(0, 100-100*l.in.held/limit)),
	}
	room := l.roomLocked(now)
	if room == 0 || l.in.held > 0 {
		l.in.calm = time.Time{}
	} else if l.in.calm.IsZero() {
		l.in.calm = now
	}
	due, _ := l.dueLocked(now)
	switch {
	case f.Held, !due, l.in.fault != nil, l.out.phase == halted, l.in.gap > 0, l.in.unstored > 0, l.in.aside.barsAt(l.in.position):
		l.in.full = time.Time{} // something else than the target keeps it
	case room > 0 && (l.out.failures == 0 || !l.in.calm.IsZero() && now.Sub(l.in.calm) > calmFor):
		l.in.full = time.Time{}
	case room == 0 && l.in.full.IsZero():
		l.in.full = now
	}
	f.Stalled = l.in.full
	return f
}

// Settle stores the lane's checkpoint, at or behind an offset that was acknowledged.
func (l *Lane) Settle(ctx context.Context, at route.Offset) error {
	if err := l.stream.commitLane(ctx, l); err != nil {
		return err
	}
	if stored := l.Flow().Stored; stored < at {
		return fmt.Errorf("the stored position is %d, another owner's is newer than %d", stored, at) //nolint:err113 // only ever shown
	}
	return nil
}

// Pace is the limits that hold for a partition, also while it has no lane.
type Pace struct {
	partition route.Partition
	limits    *limits
	now       func() time.Time
}

// Pace gives a partition's.
func (m *Mirror) Pace(p route.Partition) Pace {
	return Pace{partition: p, limits: m.limits, now: m.streams[0].now}
}

// Due says whether the limits let more of the source be read.
func (p Pace) Due() bool {
	now, due := p.now(), true
	for _, one := range p.limits.of(p.partition) {
		open, _ := one.open(now, 0)
		due = due && open
	}
	return due
}

// Charge counts against the limits what was read of the source past the lane. Negative: what it is about to be given was counted already.
func (p Pace) Charge(records, bytes int64) {
	for _, one := range p.limits.of(p.partition) {
		one.took(records, bytes)
	}
}
