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
		renews bool         // a new epoch begins behind the gap
		seq    int32        // of the next batch
		number int          // of its record
		told   int
		lost   float64 // offsets of which the target has nothing
		saved  float64 // records that were not sent again
	}{
		{"some of them", 9, 6, false, 10, 10, 1, 0, 10},
		{"all of them", 9, 10, true, 0, 10, 1, 0, 10},
		{"more", 9, 20, true, 0, 20, 1, 10, 10},
		{"nothing was stored", -1, 6, true, 0, 6, 0, 6, 0},
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
				gone := fault(route.SourceChanged, CodeOutOfRange)
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
				base := route.Offset(5000)
				if row.renews {
					base = 0
					r.renew(0, row.start)
				} else {
					require.Equal(t, row.start, r.commit().SourceOffset)
				}
				var left []made
				for n := int(row.start); n <= row.number; n++ {
					left = append(left, made{base: route.Offset(n), numbers: []int{n}})
				}
				r.feed(route.Offset(row.number)+1, left...)
				r.take(true, row.seq, row.number)
				r.ok(true, base)
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
	gone := fault(route.SourceChanged, CodeOutOfRange)
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
	require.Equal(t, route.Offset(104), r.commit().SourceOffset)
	r.renew(104, 120)
}

// Somebody has written to the target between the last answer of the old epoch and the first of the new one. If it was an owner that had read what is
// gone, and what follows, then that is there twice.
func TestWhatIsStoredWhileAGapIsPassedIsTold(t *testing.T) {
	t.Parallel()
	for base, told := range map[route.Offset]int{2: 0, 5: 1} {
		r := newRig(t, firstAt(0), 1, Plan{})
		r.openAt()
		r.lane.Fail(0, truncatedTo(20))
		r.renew(2, 20)
		for n := range 2 {
			r.feed(route.Offset(21+n), made{base: route.Offset(20 + n), numbers: []int{20 + n}})
			r.take(true, int32(n), 20+n)
			r.ok(true, base+route.Offset(3*n))
		}
		require.Equal(t, told, r.told(events.DuplicatesPossible))
	}
}

// An epoch that began behind what the one before it had left unacknowledged has no acknowledgement. What of that one came later is there twice.
func TestWhatIsStoredInTheOldEpochAfterTheNewOneIsToldWhereTheyMeet(t *testing.T) {
	t.Parallel()
	acked := time.Unix(1_700_000_000, 0)
	for name, row := range map[string]struct {
		acked time.Time
		base  route.Offset
		told  int
	}{"nothing came": {time.Time{}, 5, 0}, "something came": {time.Time{}, 8, 1}, "all was acknowledged": {acked, 8, 0}} {
		at := firstAt(10)
		at.ProducerEpoch, at.TargetOffset, at.AckedAt = 1, 5, row.acked
		r := newRig(t, at, 1, Plan{})
		h := fresh
		h.End = 5
		r.hint(h)
		r.feed(11, made{base: 10, numbers: []int{10}})
		r.take(true, 0, 10)
		r.ok(true, row.base)
		require.Equal(t, row.told, r.told(events.DuplicatesPossible), name)
	}
}

// The gap is found again each time that the lane reads from its checkpoint.
func TestGapIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	for _, row := range []struct {
		start route.Offset
		told  int
	}{{20, 1}, {20, 1}, {30, 2}, {30, 2}} {
		r.lane.Fail(r.lane.in.generation, truncatedTo(row.start))
		require.Equal(t, row.told, r.told(events.RangeSkipped))
		r.lane.mu.Lock()
		r.lane.resetLocked()
		r.lane.mu.Unlock()
	}
}

// What the lane had read before the gap was lost with the target, and the source has deleted that as well by now: it was missing without a word.
func TestGapThatHasGrownAtItsBeginningIsToldAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.hint(fresh)
	r.feed(4, four)
	r.lane.Fail(r.lane.in.generation, truncatedTo(20))
	r.take(true, 0, 0, 1, 2, 3)
	r.fail(route.Ambiguous)
	r.lane.mu.Lock()
	r.lane.resetLocked() // as it does when the target takes nothing for a while
	r.lane.mu.Unlock()
	r.lane.Fail(r.lane.in.generation, truncatedTo(20))
	var skipped [][2]route.Offset
	for _, e := range r.events.Since(0) {
		if e.Type == events.RangeSkipped {
			skipped = append(skipped, [2]route.Offset{*e.FirstOffset, *e.LastOffset})
		}
	}
	require.Equal(t, [][2]route.Offset{{4, 19}, {0, 19}}, skipped)
}
