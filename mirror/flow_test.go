package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

func TestFlowSaysSinceWhenTheTargetTakesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	require.Zero(t, r.lane.Flow().Stalled)
	r.feed(4, made{base: 2, numbers: []int{2, 3}})
	r.take(true, 2, 2, 3)
	r.fail(route.Ambiguous)
	began := r.clock
	require.Equal(t, began, r.lane.Flow().Stalled)
	r.after(3 * time.Second)
	f := r.lane.Flow()
	require.Equal(t, began, f.Stalled)
	require.Equal(t, route.Offset(2), f.Acked.Offset)
	require.False(t, f.Held)

	r.lane.Pause(true)
	f = r.lane.Flow()
	require.Zero(t, f.Stalled, "it is an operator who keeps it")
	require.True(t, f.Held)
	r.lane.Pause(false)
	require.Equal(t, r.clock, r.lane.Flow().Stalled)

	r.hint(stands(1))
	r.feed(4, made{base: 2, numbers: []int{2, 3}})
	require.NotZero(t, r.lane.Flow().Stalled, "that it answers is not that it takes anything")
	r.take(true, 2, 2, 3)
	r.ok(true, 2)
	f = r.lane.Flow()
	require.Zero(t, f.Stalled)
	require.Equal(t, route.Offset(4), f.Acked.Offset)
	require.Less(t, f.Stored, f.Acked.Offset)
	require.NoError(t, r.lane.Settle(t.Context(), f.Acked.Offset))
	require.Equal(t, f.Acked.Offset, r.lane.Flow().Stored)
}

// A failure before a long silence must not be taken for an outage when the next record comes.
func TestFlowForgetsAFailureOfALaneWithoutAnythingToSend(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.lane.Hint(fresh, fault(route.Unreachable, "CODE"))
	require.NotZero(t, r.lane.Flow().Stalled)
	r.hint(fresh)
	require.NotZero(t, r.lane.Flow().Stalled, "that it answers is not that it takes anything")
	r.after(2 * calmFor)
	require.Zero(t, r.lane.Flow().Stalled)
	r.after(time.Hour)
	r.feed(2, made{base: 0, numbers: []int{0, 1}})
	require.Zero(t, r.lane.Flow().Stalled)
}

func TestWhatIsReadPastALaneCountsAgainstItsLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.mirror.SetLimits(Limits{BytesPerSecond: 1000})
	pace := r.mirror.Pace(r.lane.plan.Source)
	require.True(t, pace.Due())
	pace.Charge(1, 5000)
	require.False(t, pace.Due())
	_, _, room := r.lane.Want()
	require.Zero(t, room)
	pace.Charge(-1, -5000)
	require.True(t, pace.Due())
	_, _, room = r.lane.Want()
	require.NotZero(t, room)
}
