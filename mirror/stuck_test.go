package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// A partition whose target takes nothing for hours (too few replicas) must not hold the memory that others copy with.
func TestRefusedLaneGivesItsMemoryAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	batch := made{base: 2, numbers: []int{2, 3}, pad: 100_000}
	r.feed(4, batch)
	r.take(true, 2, 2, 3)
	r.fail(route.Busy)
	require.NotZero(t, r.pool.Budget().Used(), "a short refusal costs no second fetch")
	r.after(time.Minute)
	r.hint(stands(1))
	r.take(true, 2, 2, 3)
	r.fail(route.Busy)
	require.Zero(t, r.pool.Budget().Used())
	r.hint(stands(1))
	_, _, room := r.lane.Want()
	require.Equal(t, int32(minFetch), room)
	r.feed(4, batch)
	r.take(true, 2, 2, 3)
	r.ok(true, 2)
	_, _, room = r.lane.Want()
	require.Greater(t, room, int32(minFetch))
}
