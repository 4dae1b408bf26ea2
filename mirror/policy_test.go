package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// parts is a source's word that an epoch of its log ends before what was read.
type parts struct {
	epoch int32
	end   route.Offset
}

func (parts) Error() string { return "another log" }

func (p parts) Parting() (int32, route.Offset) { return p.epoch, p.end }

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
	f := fault(route.SourceChanged, CodeOutOfRange)
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
		r.renew(2, 20)
		r.feed(21, made{base: 20, numbers: []int{20}})
		r.take(true, 0, 20)
		r.ok(true, 2)
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
		"halt":                      {Halt, diverges(parts{0, 1}), 0, 0, "another log"},
		"continue":                  {Continue, diverges(parts{0, 1}), Parted, 1, "another log"},
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

// What the source says of the last epoch that it has too is not where the logs part, if that epoch ended earlier with what was read: the records of the
// new leader in between would be missing.
func TestSourceIsGoneOnFromWhereItPartsFromWhatWasRead(t *testing.T) {
	t.Parallel()
	read := []made{{base: 10, numbers: []int{10, 11}, epoch: 3}, {base: 12, numbers: []int{12, 13}, epoch: 5}, {base: 14, numbers: []int{14}, epoch: 7}}
	for name, row := range map[string]struct {
		begun int32
		says  parts
		at    route.Offset // 0: it can't be told
	}{
		"in the epoch that was read last":    {3, parts{7, 14}, 14},
		"behind the end of an earlier epoch": {3, parts{5, 20}, 14},
		"within an earlier epoch":            {3, parts{5, 13}, 13},
		"two epochs are gone":                {3, parts{3, 20}, 12},
		"all epochs that were read are gone": {3, parts{2, 11}, 0},
		"it is not known where they began":   {-1, parts{2, 11}, 0},
		"but where the next one began is":    {-1, parts{3, 20}, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := firstAt(10)
			from.LeaderEpoch = row.begun
			r := newRig(t, from, 1, Plan{On: Policies{Diverged: Continue}})
			r.hint(fresh)
			r.epoch = 7
			r.feed(15, read...)
			r.lane.Fail(0, diverges(row.says))
			if row.at == 0 {
				r.stale(0)
				r.standsStill("reset the position")
				return
			}
			require.Equal(t, row.at, r.stale(Parted).At)
		})
	}
}

func TestLaneRemembersFewReigns(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{On: Policies{Diverged: Continue}})
	r.hint(fresh)
	for n := range 2 * mostReigns {
		r.epoch = int32(n + 1)
		r.feed(route.Offset(n+1), made{base: route.Offset(n), numbers: []int{n}, epoch: r.epoch})
	}
	require.Len(t, r.lane.in.reigns, mostReigns)
	require.Equal(t, route.NoOffset, r.lane.in.reigns[0].from, "what came before is forgotten")
	require.Equal(t, reign{2 * mostReigns, 2*mostReigns - 1}, r.lane.in.reigns[mostReigns-1])
}
