package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Each of ten thousand idle lanes was looked at eight times a second, which took a tenth of a core.
func TestLaneThatHasNothingToDoIsNotLookedAtUntilSomethingHappens(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	resting := func() bool {
		r.commit()
		return len(r.mirror.Restless()) == 0
	}
	require.False(t, resting(), "it asks the target")
	r.hint(fresh)
	require.True(t, resting())

	r.feed(2, made{base: 0, numbers: []int{0, 1}})
	require.False(t, resting())
	r.take(true, 0, 0, 1)
	require.False(t, resting())
	r.ok(true, 0)
	require.False(t, resting(), "its position was only just stored")
	require.EqualValues(t, 2, r.saved[len(r.saved)-1].SourceOffset)
	require.True(t, resting())
	require.EqualValues(t, 2, r.mirror.Records())

	_, generation, _ := r.lane.Want()
	require.True(t, resting())
	r.lane.Fail(generation, fault(route.SourceChanged, codeNoTopic))
	require.False(t, resting(), "it is tried again")
	r.lane.Retry()
	require.False(t, resting(), "until the source answers")
	r.lane.Extent(route.Extent{Start: 0, LastStable: 2, End: 2})
	require.True(t, resting())

	r.lane.Pause(true)
	require.True(t, resting(), "a pause is for as long as it lasts")
	r.lane.Pause(false)
	require.False(t, resting(), "it asks the target again")
}

// A limit holds a lane back without a word from outside, so time alone must let it go on.
func TestLaneThatWaitsForItsTurnIsLookedAt(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.mirror.SetLimits(Limits{RecordsPerSecond: 1})
	r.openAt()
	r.commit()
	r.commit()
	_, _, most := r.lane.Want()
	require.Zero(t, most, "two records were more than one")
	require.Len(t, r.mirror.Restless(), 1)
	r.after(2 * time.Second)
	r.sources = 0
	each(r.mirror.Restless(), (*Lane).paced)
	require.Equal(t, 1, r.sources)
}

// The rate of a lane at which nobody looked for a minute stood still as it had been.
func TestRateOfAnIdleLaneSinksWithTimeNotWithLooks(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_700_000_000, 0)
	m := meter{windowStart: began, rate: 1 << 20}
	m.roll(began.Add(time.Minute))
	require.Less(t, m.rate, 10.0)
}

// After a while without its target a partition that had nothing to copy was called degraded until its next record came.
func TestIdleLaneIsWellAsSoonAsItsTargetAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	for range 4 {
		q, due := r.lane.Inquiry()
		if q.Question == offsets.NoQuestion {
			r.clock = due
			q, _ = r.lane.Inquiry()
		}
		require.NotEqual(t, offsets.NoQuestion, q.Question)
		r.lane.Hint(offsets.Hint{}, fault(route.Unreachable, "UNREACHABLE"))
	}
	state, _ := r.lane.State()
	require.Equal(t, Degraded, state)
	r.hint(fresh)
	state, _ = r.lane.State()
	require.Equal(t, Mirroring, state)

	r.feed(2, made{base: 0, numbers: []int{0, 1}})
	r.take(true, 0, 0, 1)
	for {
		r.fail(route.Moved)
		r.after(time.Second)
		r.hint(fresh)
		if r.lane.Next() == 0 {
			break
		}
		r.take(true, 0, 0, 1)
	}
	state, _ = r.lane.State()
	require.Equal(t, Degraded, state, "what it had to send was not taken, and gave way to others meanwhile")
}
