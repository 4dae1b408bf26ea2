package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// A partition that had nothing to store for ten minutes has stored all there was: the age of what is not stored begins with the next record.
func TestIdlePartitionIsNotCalledLongUnstored(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.commit()
	r.after(10 * time.Minute)
	r.feed(3, made{base: 2, numbers: []int{2}})
	r.take(true, 2, 2)
	r.ok(true, 2)
	require.Zero(t, r.lane.Status().Uncommitted)
	r.after(3 * time.Second)
	require.Equal(t, 3*time.Second, r.lane.Status().Uncommitted)

	r.saveErr = errDisk
	require.ErrorIs(t, r.mirror.Commit(t.Context()), errDisk)
	r.after(3 * time.Second)
	require.Equal(t, 6*time.Second, r.lane.Status().Uncommitted, "it waits since it was acknowledged, not since the store failed")
	r.saveErr = nil
	r.commit()
	require.Zero(t, r.lane.Status().Uncommitted)
}

// What is acknowledged while a commit is on its way waits for the next one.
func TestAcknowledgedDuringACommitIsUnstored(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	c, changed := r.lane.takeCheckpoint()
	require.True(t, changed)
	r.after(time.Second)
	require.Equal(t, time.Second, r.lane.Status().Uncommitted, "what is on its way is not stored yet")
	r.feed(3, made{base: 2, numbers: []int{2}})
	r.take(true, 2, 2)
	r.ok(true, 2)
	r.lane.stored(c, false, nil)
	r.after(time.Second)
	require.Equal(t, time.Second, r.lane.Status().Uncommitted)
	r.commit()
	require.Zero(t, r.lane.Status().Uncommitted)
}

// A commit that the store refuses stores nothing, so what is acknowledged goes on waiting.
func TestRefusedCommitDoesNotCountAsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
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
	require.Equal(t, 2*time.Minute, r.lane.Status().Uncommitted)
	require.Equal(t, before, r.lane.Status().Committed)
}
