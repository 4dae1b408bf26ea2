package mirror

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Four records lay beyond the checkpoint on the target when the process died. Before it came back, the source lost two of them in an unclean
// election, and its new leader appended others in their place: no offset is missing, and yet the count is of other records.
func TestRecordsOfANewLeaderAreNotTakenForStored(t *testing.T) {
	t.Parallel()
	grown := []made{
		{base: 100, numbers: []int{100, 101}, epoch: 3}, {base: 102, numbers: []int{202, 203}, epoch: 4}, {base: 104, numbers: []int{204}, epoch: 4},
	}
	same := []made{
		{base: 100, numbers: []int{100, 101}, epoch: 3}, {base: 102, numbers: []int{102, 103}, epoch: 4}, {base: 104, numbers: []int{204}, epoch: 4},
	}
	for name, row := range map[string]struct {
		source   []made
		hint     offsets.Hint // what the log shows
		noRead   bool
		diverged bool
	}{
		"the log was cut":                               {source: grown, hint: shows(53, 103), diverged: true},
		"the log was cut and may not be read":           {source: grown, hint: stamped(stands(53), 999), noRead: true, diverged: true},
		"a leader moved and nothing was lost":           {source: same, hint: shows(53, 103)},
		"a leader moved and the log may not be read":    {source: same, hint: stamped(stands(53), 1000), noRead: true},
		"a leader moved and the target cleaned it away": {source: same, hint: stamped(shows(53, 0), 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := firstAt(100)
			at.Sequence, at.Opened, at.TargetOffset, at.LeaderEpoch = 50, true, 100, 3
			r := newRig(t, at, 1, Plan{KeepAppendTime: true})
			r.epoch = 4
			walk := func() {
				r.hint(stamped(stands(53), row.hint.Timestamp))
				r.feed(105, row.source...)
				if row.noRead {
					_, _ = r.lane.Inquiry()
					r.lane.Hint(offsets.Hint{}, fault(route.Refused, "TOPIC_AUTHORIZATION_FAILED"))
				}
				r.hint(row.hint)
				if _, _, room := r.lane.Want(); room > 0 {
					r.feed(105, row.source...) // what was walked over was dropped
				}
			}
			walk()
			if !row.diverged {
				r.take(true, 54, 204)
				r.ok(true, 104)
				require.Equal(t, route.Offset(105), r.commit().SourceOffset)
				require.Zero(t, r.told(events.SourceDiverged))
				return
			}
			s := r.lane.Status()
			require.Equal(t, Halted, s.State)
			require.Contains(t, s.Reason, codeDiverged)
			require.Equal(t, route.Offset(100), s.Acked)
			require.Zero(t, r.lane.Next(), "something is sent although the target is not a copy of the source")
			require.Equal(t, 1, r.told(events.SourceDiverged))
			require.Equal(t, 1, r.told(events.PartitionHalted))
			if !row.noRead {
				r.lane.Retry()
				walk()
				require.Equal(t, Halted, r.lane.Status().State)
				require.Equal(t, 1, r.told(events.SourceDiverged), "told once, not at each retry")
			}
		})
	}
}

func TestCountIsBelievedWhereEachOffsetIsARecordOfOneReign(t *testing.T) {
	t.Parallel()
	at := firstAt(100)
	at.Sequence, at.Opened, at.TargetOffset, at.LeaderEpoch = 50, true, 100, 3
	r := newRig(t, at, 1, Plan{KeepAppendTime: true})
	r.hint(offsets.Hint{Known: true, Last: 53, First: -1, Timestamp: 1, End: 1000})
	r.feed(106, made{base: 100, numbers: []int{100, 101}, epoch: 3}, made{base: 102, numbers: []int{102, 103}, epoch: 3}, made{base: 104, numbers: []int{204, 205}, epoch: 4})
	r.take(true, 54, 204, 205)
	r.ok(true, 200)
	require.Equal(t, route.Offset(106), r.commit().SourceOffset)
}
