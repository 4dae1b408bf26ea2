package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// parts is a source's word that its log is another one from an offset on.
type parts route.Offset

func (parts) Error() string           { return "another log" }
func (p parts) Parting() route.Offset { return route.Offset(p) }
func diverges(err error) *route.Fault {
	f := fault(route.SourceChanged, codeDiverged)
	f.Err = err
	return f
}
func (r *rig) stale(cause Cause) Anew {
	r.t.Helper()
	a := r.lane.Stale()
	require.Equal(r.t, cause, a.Cause)
	return a
}
func (r *rig) standsStill(why string) {
	r.t.Helper()
	s := r.lane.Status()
	require.Equal(r.t, Halted, s.State)
	require.Contains(r.t, s.Reason, why)
}
func truncatedTo(to route.Offset) *route.Fault {
	f := fault(route.SourceChanged, codeOutOfRange)
	f.Extent = route.Extent{Start: to, LastStable: to + 10, End: to + 10}
	return f
}

// What was read before the gap goes on; nothing behind it is read before an operator has spoken.
func TestTruncatedSourceHaltsByPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{On: Policies{Truncated: Halt}})
	r.openAt()
	r.feed(3, made{base: 2, numbers: []int{2}})
	r.lane.Fail(0, truncatedTo(20))
	r.take(true, 2, 2)
	r.ok(true, 2)
	r.standsStill("the source deleted the offsets 3 to 19 before they were copied")
	_, _, room := r.lane.Want()
	require.Zero(t, room)
	require.Equal(t, route.Offset(3), r.commit().SourceOffset)
	for range 2 { // by the timer
		r.lane.Retry()
		require.Equal(t, Halted, r.lane.Status().State, "recovered for as long as it takes to ask")
		at, generation, room := r.lane.Want()
		require.Positive(t, room)
		require.Equal(t, route.Offset(3), at.Offset)
		r.lane.Fail(generation, truncatedTo(25))
	}
	r.standsStill("3 to 24")
	require.Equal(t, 1, r.told(events.SourceTruncated))
	require.Equal(t, 1, r.told(events.PartitionHalted))
	require.Zero(t, r.told(events.RangeSkipped))
	require.Zero(t, r.told(events.PartitionRecovered))
	r.stale(0)
}

func TestSkippedRangeShowsInTheState(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{Continue, Recopy} {
		r := newRig(t, firstAt(0), 1, Plan{On: Policies{Truncated: policy}})
		r.openAt()
		r.lane.Fail(0, truncatedTo(20))
		require.Equal(t, route.Offset(20), r.commit().SourceOffset)
		s := r.lane.Status()
		require.Equal(t, Mirroring, s.State)
		require.Equal(t, "offsets 2 to 19 were skipped: source_truncated", s.Reason)
	}
}

func TestDivergedSourceByPolicy(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		policy Policy
		fault  *route.Fault
		cause  Cause
		at     route.Offset
		why    string
	}{
		"halt":                      {Halt, diverges(parts(1)), 0, 0, "another log"},
		"continue":                  {Continue, diverges(parts(1)), Parted, 1, "another log"},
		"continue, no offset known": {Continue, diverges(errDisk), 0, 0, "reset the position"},
		"recopy":                    {Recopy, diverges(errDisk), Again, 0, "disk on fire"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, firstAt(0), 1, Plan{On: Policies{Diverged: row.policy}})
			r.openAt()
			r.lane.Fail(0, row.fault)
			r.standsStill(row.why)
			a := r.stale(row.cause)
			require.Equal(t, row.at, a.At)
			if row.cause != 0 {
				require.Equal(t, int64(7), a.ProducerID)
			}
			require.Equal(t, 1, r.told(events.SourceDiverged))
		})
	}
}

// Records of the target that the source has lost behind the checkpoint: with which policy the partition is started anew.
func TestReplacedRecordsByPolicy(t *testing.T) {
	t.Parallel()
	for policy, cause := range map[Policy]Cause{Halt: 0, Continue: Uncounted, Recopy: Again} {
		at := firstAt(100)
		at.Sequence, at.Opened, at.TargetOffset, at.LeaderEpoch, at.AckedAt = 50, true, 100, 3, time.Unix(1_700_000_000, 0)
		r := newRig(t, at, 1, Plan{On: Policies{Diverged: policy}})
		r.epoch = 4
		walk := func(h offsets.Hint) {
			r.hint(h)
			r.feed(103, made{base: 100, numbers: []int{100}, epoch: 3}, made{base: 101, numbers: []int{201, 202}, epoch: 4})
		}
		walk(stands(52))
		walk(shows(52, 102))
		r.standsStill(codeDiverged)
		r.stale(cause)
		r.lane.Retry()
		if cause != 0 {
			require.Zero(t, r.lane.Next(), "a retry can't mend it")
		}
	}
}
