package mirror

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

func TestSuspendedLaneStandsStillAndTakesOverAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
	r.take(true, 2, 2)
	r.lane.Suspend()
	require.Equal(t, Suspended, r.lane.Status().State)
	require.Zero(t, r.lane.Next(), "sends while suspended")
	_, _, room := r.lane.Want()
	require.Zero(t, room, "fetches while suspended")
	r.ok(true, 2)
	require.Equal(t, route.Offset(3), r.commit().SourceOffset, "what was on its way counts")

	woken := r.sources
	r.lane.Resume()
	r.lane.Resume()
	require.Greater(t, r.sources, woken)
	require.Equal(t, -1, r.lane.Next(), "goes on without asking what the target holds")
	r.hint(stands(3)) // another owner stored the next record meanwhile
	r.take(true, 3, 3)
	r.ok(true, 3)
	require.Equal(t, route.Offset(4), r.commit().SourceOffset)
}

func TestResumedLaneWaitsForWhatIsUnanswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
	r.take(true, 2, 2)
	r.lane.Suspend()
	r.lane.Resume()
	require.Zero(t, r.lane.Next(), "sends behind a request of before")
	r.ok(true, 2)
	r.hint(stands(2))
	r.take(true, 3, 3)
	r.ok(true, 3)
	require.Equal(t, route.Offset(4), r.commit().SourceOffset)
}

func TestSuspendedLaneThatWasAskingDoesNotAsk(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.lane.Suspend()
	require.Zero(t, r.lane.Next())
	q, _ := r.lane.Inquiry()
	require.Equal(t, offsets.NoQuestion, q.Question)
	r.lane.Resume()
	r.openAt()
}

func TestSuspendedLaneDrains(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 32, Plan{})
	r.openAt()
	r.feed(3, made{base: 2, numbers: []int{2}})
	r.take(false, 2, 2)
	r.lane.Suspend()
	r.ok(false, 2)
	drained := r.lane.close()
	r.take(true, 2, 2) // the window's end, or the next owner would have to find out what became of it
	r.ok(true, 2)
	<-drained
	c := r.commit()
	require.Equal(t, route.Offset(3), c.SourceOffset)
	require.True(t, c.Clean)
}

func TestOwnerOfANewerEpochCastsDoubt(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	_, doubted := r.lane.Doubted()
	require.False(t, doubted)
	r.feed(3, made{base: 2, numbers: []int{2}})
	r.take(true, 2, 2)
	r.lane.Answer(true, route.NoOffset, fault(route.Order, "INVALID_PRODUCER_EPOCH"))
	newer := stands(0)
	newer.Epoch = 1
	r.hint(newer)
	c, doubted := r.lane.Doubted()
	require.True(t, doubted, "nobody is told to read the store")
	require.Zero(t, c.ProducerEpoch)
	_, doubted = r.lane.Doubted()
	require.False(t, doubted, "told twice")
	r.hint(newer)
	_, doubted = r.lane.Doubted()
	require.True(t, doubted, "it lasts, and is told again")
}

func TestOvertakenCheckpointCastsDoubt(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.saveErr = &offsets.ConflictError{Refused: []offsets.Refused{{Checkpoint: firstAt(0), Reason: "another epoch"}}}
	require.NoError(t, r.mirror.Commit(t.Context()))
	_, doubted := r.lane.Doubted()
	require.True(t, doubted)
}

func TestStoreOutOfReachEndsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.saveErr = fmt.Errorf("save: %w", offsets.ErrUnavailable)
	s := r.lane.stream
	s.cfg.CommitInterval = time.Nanosecond
	tried := make(chan struct{})
	s.deps.Saver = saver(func(context.Context, []offsets.Checkpoint) error {
		select {
		case tried <- struct{}{}:
		default:
		}
		return r.saveErr
	})
	clock := time.Now()
	s.now = func() time.Time { clock = clock.Add(time.Second); return clock } // asked by the loop alone
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.commitLoop(ctx) }() // owned by the test, which waits for its end
	for range 3 {
		select {
		case <-tried:
		case err := <-ended:
			t.Fatalf("the loop ended: %v", err)
		}
	}
	cancel()
	require.NoError(t, <-ended)
	require.GreaterOrEqual(t, r.mirror.Load().Unstored, int64(3))
}

func TestLoadCountsBatches(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
	sum := 0
	for _, n := range r.mirror.Load().Queued {
		sum += n
	}
	require.Equal(t, 2, sum)
}

type saver func(context.Context, []offsets.Checkpoint) error

func (f saver) Save(ctx context.Context, cs []offsets.Checkpoint) error { return f(ctx, cs) }

func TestPausedLaneStandsStillUntilItGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(4, made{base: 2, numbers: []int{2, 3}})
	r.take(true, 2, 2, 3)
	r.feed(6, made{base: 4, numbers: []int{4, 5}})
	r.lane.Pause(true)
	require.Equal(t, Paused, r.lane.Status().State)
	require.False(t, wants(r.lane), "fetches")
	require.Zero(t, r.lane.Next(), "sends")
	r.ok(true, 2)
	require.Equal(t, route.Offset(4), r.commit().SourceOffset, "what is answered counts")

	r.lane.Suspend()
	r.lane.Pause(false)
	require.Equal(t, Suspended, r.lane.Status().State)
	require.False(t, wants(r.lane), "the one hold does not end with the other")
	r.lane.Pause(true)
	r.lane.Resume()
	require.False(t, wants(r.lane))
	woken := r.sources
	r.lane.Pause(false)
	require.Greater(t, r.sources, woken)
	r.hint(stands(3)) // it may have been forgotten meanwhile
	r.feed(6, made{base: 4, numbers: []int{4, 5}})
	r.take(true, 4, 4, 5)
	r.ok(true, 4)
	require.Equal(t, route.Offset(6), r.commit().SourceOffset)
}
