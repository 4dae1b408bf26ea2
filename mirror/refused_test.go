package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// A commit that the store refuses stores nothing, so what is acknowledged has waited since the last one that it took.
func TestRefusedCommitDoesNotCountAsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.after(time.Minute)
	r.openAt()
	require.Equal(t, time.Minute, r.lane.Status().Uncommitted, "the first checkpoint was stored when the lane began")
	r.commit()
	require.Zero(t, r.lane.Status().Uncommitted)

	before := r.lane.Status().Committed
	r.saveErr = &offsets.ConflictError{Refused: []offsets.Refused{{Checkpoint: firstAt(0), Reason: "no checkpoint was begun"}}}
	for n := 2; n < 4; n++ {
		r.after(time.Minute)
		r.feed(route.Offset(n+1), made{base: route.Offset(n), numbers: []int{n}})
		r.take(true, int32(n), n)
		r.ok(true, route.Offset(n))
		require.NoError(t, r.mirror.Commit(t.Context()))
		_, doubted := r.lane.Doubted()
		require.True(t, doubted)
	}
	r.after(time.Minute)
	r.feed(5, made{base: 4, numbers: []int{4}})
	r.take(true, 4, 4)
	r.ok(true, 4)
	require.Equal(t, 3*time.Minute, r.lane.Status().Uncommitted)
	require.Equal(t, before, r.lane.Status().Committed)
}
