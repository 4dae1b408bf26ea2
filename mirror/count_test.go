package mirror

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Four records lay beyond the checkpoint on the target when the process died; before it came back, a cleaner took two of them from the source.
// Counting four records in what is left would take two new ones for stored ones, and lose them.
func TestRecordsAfterCompactedOnesAreNotTakenForStored(t *testing.T) {
	t.Parallel()
	keep := Plan{KeepAppendTime: true}
	for name, row := range map[string]struct {
		hint    offsets.Hint // what the log shows
		noRead  bool
		plan    Plan
		recount bool
	}{
		"the target's last record is another one":        {hint: shows(103, 102), plan: keep, recount: true},
		"the target's last record is the one counted to": {hint: shows(103, 105), plan: keep},
		"it has another timestamp":                       {hint: marked(shows(103, 105), 999), plan: keep, recount: true},
		"the target stamps append times":                 {hint: marked(shows(103, 105), 999)},
		"and the record is another one":                  {hint: marked(shows(103, 102), 999), recount: true},
		"a cleaner took it, the batch is older":          {hint: stamped(shows(103, 0), 999), plan: keep, recount: true},
		"a cleaner took it, the batch is not older":      {hint: stamped(shows(103, 0), 1000), plan: keep},
		"it may not be read, the batch is older":         {hint: stamped(stands(103), 999), noRead: true, plan: keep, recount: true},
		"it may not be read, the batch is not older":     {hint: stamped(stands(103), 1000), noRead: true, plan: keep},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := firstAt(100)
			at.Sequence, at.Opened, at.TargetOffset = 100, true, 100
			r := newRig(t, at, 1, row.plan)
			left := []made{
				{base: 100, numbers: []int{100, 103}, deltas: []int{0, 3}}, {base: 104, numbers: []int{104, 105}}, {base: 106, numbers: []int{106, 107}},
			}
			r.hint(stamped(stands(103), row.hint.Timestamp))
			r.feed(108, left...)
			if row.noRead {
				_, _ = r.lane.Inquiry()
				r.lane.Hint(offsets.Hint{}, fault(route.Refused, "TOPIC_AUTHORIZATION_FAILED"))
			}
			r.hint(row.hint)
			recount := r.lane.Stale().Cause == Uncounted
			require.Equal(t, row.recount, recount)
			if row.recount {
				require.Zero(t, r.lane.Next(), "something is sent although nothing can be counted")
				r.lane.Retry()
				require.Zero(t, r.lane.Next(), "a retry can't count either")
				return
			}
			r.take(true, 104, 106, 107)
			r.ok(true, 200)
		})
	}
}

// Nothing is left of the stored records, and an answer of the source says so before the target has said what it holds. If the checkpoint's offset
// moved over them but not its sequence, the records behind them would be counted as stored, and lost.
func TestEmptyRangeMovesNothingBeforeTheTargetIsKnown(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		hint    offsets.Hint
		recount bool
		acked   route.Offset // before anything is sent
	}{
		"something is stored beyond the checkpoint": {hint: shows(51, 101), recount: true, acked: 100},
		"nothing is": {hint: stands(49), acked: 102},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := firstAt(100)
			at.Sequence, at.Opened, at.TargetOffset = 50, true, 100
			r := newRig(t, at, 1, Plan{KeepAppendTime: true})
			r.feed(102)
			require.Equal(t, route.Offset(100), r.lane.Status().Acked)
			r.hint(row.hint)
			require.Equal(t, row.acked, r.lane.Status().Acked)
			r.feed(106, made{base: 102, numbers: []int{102, 103}}, made{base: 104, numbers: []int{104, 105}})
			recount := r.lane.Stale().Cause == Uncounted
			require.Equal(t, row.recount, recount)
			if row.recount {
				require.Zero(t, r.lane.Next(), "something is sent although nothing can be counted")
				return
			}
			r.take(true, 50, 102, 103)
			r.ok(true, 200)
			r.take(true, 52, 104, 105)
			r.ok(true, 202)
		})
	}
}

// A transaction's marker takes an offset and no sequence. An owner that died had cut the records behind it otherwise than the next one does: the
// target stands inside one of its batches. That is no reason to begin a new epoch, by which every other owner is thrown out.
func TestBoundaryInsideABatchBehindAMarkerIsNoReasonForANewEpoch(t *testing.T) {
	t.Parallel()
	at := firstAt(100)
	at.Sequence, at.Opened, at.TargetOffset = 50, true, 100
	r := newRig(t, at, 1, Plan{KeepAppendTime: true})
	r.hint(stamped(stands(52), 1000))
	r.feed(106, made{base: 100, numbers: []int{100, 101}}, made{base: 103, numbers: []int{103, 104, 105}}) // 102 is the marker
	q, _ := r.lane.Inquiry()
	require.Equal(t, offsets.AskLog, q.Question, "counted without a look at the target")
	r.lane.Hint(shows(52, 103), nil)
	r.take(true, 53, 104, 105)
	r.ok(true, 200)
	require.Equal(t, route.Offset(106), r.commit().SourceOffset)
}

// The cleaner that took two of four stored records left the last one: what follows it is new, and nothing is sent twice.
func TestCountIsSetRightByTheLastRecordThatIsStillThere(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		left []made
	}{
		"in one batch":        {left: []made{{base: 100, numbers: []int{100, 103, 104, 105, 106, 107}, deltas: []int{0, 3, 4, 5, 6, 7}}}},
		"at a batch's end":    {left: []made{{base: 100, numbers: []int{100, 103}, deltas: []int{0, 3}}, {base: 104, numbers: []int{104, 105, 106, 107}}}},
		"in batches for each": {left: []made{{base: 100, numbers: []int{100}}, {base: 103, numbers: []int{103}}, {base: 104, numbers: []int{104}}, {base: 105, numbers: []int{105, 106, 107}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := firstAt(100)
			at.Sequence, at.Opened, at.TargetOffset = 100, true, 100
			r := newRig(t, at, 1, Plan{KeepAppendTime: true})
			r.hint(stands(103))
			r.feed(108, row.left...)
			r.hint(shows(103, 103))
			r.feed(108, row.left...) // once with the log's answer, once with the right count
			r.feed(108, row.left...)
			var got []int
			for seq := int32(104); r.lane.Next() > 0; {
				b, all := r.lane.Take()
				require.Equal(t, seq, b.BaseSequence())
				numbers := numbersOf(t, b)
				got, seq = append(got, numbers...), seq+int32(len(numbers))
				r.ok(all, route.Offset(100+seq))
			}
			require.Equal(t, []int{104, 105, 106, 107}, got)
			require.Equal(t, route.Offset(108), r.commit().SourceOffset)
			recount := r.lane.Stale().Cause == Uncounted
			require.False(t, recount)
		})
	}
}

func TestLastRecordThatIsNotReplicatedYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	at := firstAt(100)
	at.Sequence, at.Opened, at.TargetOffset = 50, true, 100
	r := newRig(t, at, 1, Plan{KeepAppendTime: true})
	r.hint(stamped(stands(51), 1))
	r.feed(105, made{base: 100, numbers: []int{100}}, made{base: 103, numbers: []int{103, 104}})
	short := shows(51, 0)
	short.First = -1
	for range mostReads - 1 {
		r.hint(short)
		require.LessOrEqual(t, r.lane.Next(), 0, "went on although the target does not show what it has")
	}
	r.hint(shows(51, 103))
	r.take(true, 52, 104)
	r.ok(true, 200)
}
