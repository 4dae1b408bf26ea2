package mirror

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// A topic that was paused in the middle of a backlog kept what it had read for as long as it was paused, and the others of the worker had no memory left.
func TestPausedLaneGivesItsMemoryAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(5, made{base: 2, numbers: []int{2}, pad: 1 << 20}, made{base: 3, numbers: []int{3}, pad: 1 << 20}, made{base: 4, numbers: []int{4}})
	r.take(true, 2, 2)
	r.lane.Pause(true)
	require.NotZero(t, r.pool.Budget().Used(), "what is on its way is still read")
	r.ok(true, 2)
	require.Zero(t, r.pool.Budget().Used(), "what a paused lane holds is taken from all others")
	require.EqualValues(t, 3, r.commit().SourceOffset)

	r.lane.Pause(false)
	r.hint(stands(2))
	at, _, room := r.lane.Want()
	require.EqualValues(t, 3, at.Offset, "it is read again from where it stood")
	require.Positive(t, room)
	r.feed(5, made{base: 3, numbers: []int{3}}, made{base: 4, numbers: []int{4}})
	r.take(true, 3, 3)
	r.ok(true, 3)
	r.take(true, 4, 4)
	r.ok(true, 4)
	require.Equal(t, route.Offset(5), r.commit().SourceOffset)
}

// What came after the pause had begun, or was already there without anything on its way.
func TestPausedLaneGivesAtOnceWhatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	_, generation, _ := r.lane.Want()
	r.feedTo(generation, 3, made{base: 0, numbers: []int{0}}, made{base: 1, numbers: []int{1}}, made{base: 2, numbers: []int{2}})
	require.NotZero(t, r.pool.Budget().Used())
	r.lane.Pause(true)
	require.Zero(t, r.pool.Budget().Used())
	r.feedTo(generation, 3, made{base: 0, numbers: []int{0}})
	require.Zero(t, r.pool.Budget().Used(), "an answer that was on its way is dropped")
}
