package mirror

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// The mirror died with records stored beyond its checkpoint, and the source has deleted some of them: those that are left are not sent again,
// and new ones are not taken for them.
func TestSourceDeletesWhatWasStoredBeyondTheCheckpoint(t *testing.T) {
	t.Parallel()
	opened := firstAt(0)
	opened.Opened, opened.AckedAt = true, time.Unix(1_700_000_000, 0)
	for _, row := range []struct {
		name   string
		stored int32        // sequences 0 to it are on the target
		start  route.Offset // of the source's log
		seq    int32        // of the next batch
		number int          // of its record
		told   int
		lost   float64 // offsets of which the target has nothing
		saved  float64 // records that were not sent again
	}{
		{"some of them", 9, 6, 10, 10, 1, 0, 10},
		{"all of them", 9, 10, 10, 10, 1, 0, 10},
		{"more", 9, 20, 10, 20, 1, 10, 10},
		{"nothing was stored", -1, 6, 0, 6, 0, 6, 0},
	} {
		for _, early := range []bool{true, false} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, opened, 1, Plan{IDExpiration: 24 * time.Hour})
				h := fresh
				if row.stored >= 0 {
					h = stands(row.stored)
				}
				if row.stored < 0 {
					h = offsets.Hint{Known: true, Last: 1<<31 - 1, First: -1, Timestamp: -1}
				}
				gone := fault(route.SourceChanged, codeOutOfRange)
				gone.Extent = route.Extent{Start: row.start, LastStable: 30, End: 30}
				if early {
					r.lane.Fail(0, gone)
					require.Zero(t, r.commit().SourceOffset+1, "passed the gap before it is known what the target has")
					r.hint(h)
				} else {
					r.hint(h)
					r.lane.Fail(0, gone)
				}
				if row.stored >= 0 { // only the log shows that it is replicated
					require.Zero(t, r.commit().SourceOffset+1, "went by a hint")
					h.Read, h.First = true, h.Last
					r.hint(h)
				}
				_, _, room := r.lane.Want()
				require.Zero(t, room)
				require.Equal(t, row.start, r.commit().SourceOffset)
				var left []made
				for n := int(row.start); n <= row.number; n++ {
					left = append(left, made{base: route.Offset(n), numbers: []int{n}})
				}
				r.feed(route.Offset(row.number)+1, left...)
				r.take(true, row.seq, row.number)
				r.ok(true, 5000)
				require.Equal(t, route.Offset(row.number)+1, r.commit().SourceOffset)
				require.Equal(t, row.told, r.told(events.DuplicatesPossible))
				require.Equal(t, row.lost, testutil.ToFloat64(r.lane.counts.truncated))
				require.Equal(t, row.saved, testutil.ToFloat64(r.lane.counts.avoided))
			})
		}
	}
}

// A leader that was deposed without knowing it says that it has records which nobody else has. What the lane still holds, and the source no
// longer has, must not be given up for that.
func TestGapIsNotPassedByWhatADeposedLeaderSays(t *testing.T) {
	t.Parallel()
	at := firstAt(100)
	at.Sequence, at.Opened, at.AckedAt, at.TargetOffset = 50, true, time.Unix(1_700_000_000, 0), 100
	r := newRig(t, at, 1, Plan{IDExpiration: 24 * time.Hour})
	r.feed(104, made{base: 100, numbers: []int{100, 101, 102, 103}})
	gone := fault(route.SourceChanged, codeOutOfRange)
	gone.Extent = route.Extent{Start: 120, LastStable: 130, End: 130}
	r.lane.Fail(0, gone)
	r.hint(stands(57)) // eight records
	require.Equal(t, route.NoOffset, r.commit().SourceOffset, "committed what nobody has acknowledged")
	unseen := stands(57)
	unseen.Read = true
	r.hint(unseen) // its log does not show them as replicated
	require.Equal(t, route.NoOffset, r.commit().SourceOffset, "committed what nobody has acknowledged")
	r.hint(stands(49)) // the leader that took over
	r.take(true, 50, 100, 101, 102, 103)
	r.ok(true, 100)
	require.Equal(t, route.Offset(120), r.commit().SourceOffset)
}
