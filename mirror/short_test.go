package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Six records lay beyond the checkpoint on the target when the process died, and fewer are left at the source: an idle partition waited for ever, and
// one with few new records forwarded none of them until there were as many as were missing.
func TestWalkThatTheSourceCannotEndIsEnded(t *testing.T) {
	t.Parallel()
	unread := shows(55, 0)
	unread.First = -1
	for name, row := range map[string]struct {
		left    []made
		end     route.Offset
		shows   offsets.Hint
		cut     bool
		recount bool
		sends   []int // what is new
	}{
		"a cleaner left the last": {
			left: []made{{base: 100, numbers: []int{100, 105}, deltas: []int{0, 5}}}, end: 106, shows: shows(55, 105), sends: nil,
		},
		"a cleaner left the last, and something is new": {
			left: []made{{base: 100, numbers: []int{100, 105}, deltas: []int{0, 5}}, {base: 106, numbers: []int{106}}}, end: 107, shows: shows(55, 105), sends: []int{106},
		},
		"a cleaner took the last, and something is new": {
			left: []made{{base: 100, numbers: []int{100}}, {base: 106, numbers: []int{106}}}, end: 107, shows: shows(55, 105), recount: true,
		},
		"a cleaner took all":    {end: 106, shows: shows(55, 105), recount: true},
		"the log was cut":       {left: []made{{base: 100, numbers: []int{100, 101}}}, end: 102, shows: shows(55, 105), cut: true},
		"all behind it was cut": {end: 100, shows: shows(55, 105), cut: true},
		"cut, and never shown":  {left: []made{{base: 100, numbers: []int{100, 101}}}, end: 102, shows: unread, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := firstAt(100)
			at.Sequence, at.Opened, at.TargetOffset, at.LeaderEpoch = 50, true, 100, 0
			r := newRig(t, at, 1, Plan{KeepAppendTime: true})
			r.lane.Extent(route.Extent{Start: 0, LastStable: row.end, End: row.end})
			feed := func() {
				if row.end > 100 {
					r.feed(row.end, row.left...)
				}
			}
			r.hint(stamped(stands(55), 1000))
			feed()
			require.True(t, r.lane.Short())
			require.Contains(t, r.lane.Status().Reason, "records beyond the checkpoint that the source does not show")
			r.lane.Ends(row.end + 1)
			r.after(doubtFor - time.Second)
			require.True(t, r.lane.Short())
			r.lane.Ends(row.end)
			require.True(t, r.lane.Short(), "believed before its time")
			r.after(time.Second)
			r.lane.Ends(row.end) // has the log read
			for range 2 * mostReads {
				if r.lane.Next() < 0 {
					r.hint(row.shows)
				}
				if _, _, room := r.lane.Want(); room > 0 && !r.lane.Short() {
					feed()
				}
				r.lane.Ends(row.end)
			}
			recount := r.lane.Stale().Cause == Uncounted
			require.Equal(t, row.recount, recount)
			if row.cut {
				require.Equal(t, Halted, r.lane.Status().State)
				require.Equal(t, 1, r.told(events.SourceDiverged))
			}
			if row.cut || row.recount {
				require.Zero(t, r.lane.Next(), "something is sent")
				return
			}
			require.Positive(t, r.lane.Next())
			b, all := r.lane.Take()
			require.True(t, all)
			if row.sends != nil {
				require.Equal(t, row.sends, numbersOf(t, b))
				require.Equal(t, int32(56), b.BaseSequence())
			}
			r.ok(all, 200)
			require.Equal(t, row.end, r.commit().SourceOffset)
		})
	}
}
