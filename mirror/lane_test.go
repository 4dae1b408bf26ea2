package mirror

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

func TestOldGenerationsAndKnownBatchesAreDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(4), 1, Plan{})
	at, generation, room := r.lane.Want()
	require.Equal(t, route.Offset(4), at.Offset)
	require.Positive(t, room)
	r.feedTo(generation+1, 10, made{base: 4, numbers: []int{4}})
	require.Zero(t, r.pool.Budget().Used())
	r.hint(fresh)
	r.feed(6, made{base: 0, numbers: []int{0, 1, 2, 3}}, made{base: 3, numbers: []int{3, 4, 5}})
	r.take(true, 0, 4, 5) // the first batch lies before the position, the second is cropped
	r.ok(true, 0)
	require.Equal(t, route.Offset(6), r.commit().SourceOffset)
}

func TestRoomFollowsTheTarget(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	_, _, room := r.lane.Want()
	require.EqualValues(t, leastLimit, room)
	big := made{base: 0, numbers: []int{0}, pad: leastLimit - 1000}
	r.feed(1, big)
	_, _, room = r.lane.Want()
	require.Zero(t, room, "a full lane wants more")
	r.hint(fresh)
	require.Positive(t, r.lane.Next())
	_, _ = r.lane.Take()
	woken := r.sources
	r.ok(true, 0)
	require.Greater(t, r.sources, woken, "the source is not told of the room")
	_, _, room = r.lane.Want()
	require.Positive(t, room)

	r.feed(2, made{base: 1, numbers: []int{1}})
	r.take(true, 1, 1)
	r.fail(route.Ambiguous)
	_, _, room = r.lane.Want()
	require.Zero(t, room, "a lane whose target can't be asked takes more")
	r.hint(stands(0))
	_, _, room = r.lane.Want()
	require.Positive(t, room)
}

func TestEachFailureGoesBackToAsking(t *testing.T) {
	t.Parallel()
	for _, class := range []route.FaultClass{route.Moved, route.Ambiguous, route.Order, route.Busy, route.Unreachable} {
		r := newRig(t, firstAt(0), 1, Plan{})
		r.openAt()
		r.feed(5, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}}, made{base: 4, numbers: []int{4}})
		r.take(true, 2, 2)
		r.take(true, 3, 3)
		r.take(true, 4, 4)
		r.ok(true, 2)
		r.fail(class)
		require.Zero(t, r.lane.Next(), "goes on before everything is answered")
		r.ok(true, 4) // after a failure nothing counts
		require.Equal(t, route.Offset(3), r.commit().SourceOffset)
		r.hint(stands(3)) // 3 was stored after all
		r.take(true, 4, 4)
		r.ok(true, 4)
		require.Equal(t, route.Offset(5), r.commit().SourceOffset)
		require.Equal(t, int32(5), r.commit().Sequence)
	}
}

func TestRefusalHaltsUntilRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(3, made{base: 2, numbers: []int{2}})
	r.take(true, 2, 2)
	r.fail(route.Refused)
	require.Equal(t, Halted, r.lane.Status().State)
	require.Contains(t, r.lane.Status().Reason, "CODE")
	require.Zero(t, r.lane.Next())
	require.Zero(t, r.pool.Budget().Used(), "a halted lane holds memory")
	_, _, room := r.lane.Want()
	require.Zero(t, room)
	r.lane.Retry()
	r.hint(stands(1))
	r.feed(3, made{base: 2, numbers: []int{2}})
	r.take(true, 2, 2)
	r.ok(true, 2)
	require.Equal(t, Mirroring, r.lane.Status().State)
	require.Equal(t, 1, r.told(events.PartitionHalted))
	require.Equal(t, 1, r.told(events.PartitionRecovered))
}

func TestSourceFaultHaltsReadingOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(3, made{base: 2, numbers: []int{2}})
	_, generation, _ := r.lane.Want()
	r.lane.Fail(generation, fault(route.Refused, "TOPIC_AUTHORIZATION_FAILED"))
	_, _, room := r.lane.Want()
	require.Zero(t, room)
	require.Equal(t, Halted, r.lane.Status().State)
	r.take(true, 2, 2)
	r.lane.Retry()
	r.lane.Extent(route.Extent{Start: 0, LastStable: 3, End: 3})
	require.Equal(t, 1, r.told(events.PartitionRecovered), "an idle partition does not tell that it goes on")
	r.ok(true, 2)
}

func TestTruncationGoesOnAtTheFirstRecordLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	_, generation, _ := r.lane.Want()
	f := fault(route.SourceChanged, CodeOutOfRange)
	f.Extent = route.Extent{Start: 50, LastStable: 60, End: 60}
	r.lane.Fail(generation, f)
	r.handle()
	require.Equal(t, 1, r.told(events.RangeSkipped))
	require.Equal(t, 1, r.told(events.SourceTruncated))
	_, _, room := r.lane.Want()
	require.Zero(t, room, "the checkpoint behind the gap is not stored yet")
	require.Equal(t, route.Offset(2), r.commit().SourceOffset)
	r.renew(2, 50)
	at, _, room := r.lane.Want()
	require.Equal(t, route.Offset(50), at.Offset)
	require.Positive(t, room)
	r.feed(51, made{base: 50, numbers: []int{50}})
	r.take(true, 0, 50)
	r.ok(true, 2)
}

func TestEmptyRangesMoveThePositionInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(10)
	require.Equal(t, route.Offset(10), r.commit().SourceOffset)
	r.feed(20, made{base: 10, numbers: []int{10}})
	r.feed(30)
	require.Equal(t, route.Offset(10), r.commit().SourceOffset, "moved over what is not acknowledged")
	r.take(true, 2, 10)
	r.ok(true, 2)
	require.Equal(t, route.Offset(30), r.commit().SourceOffset)
	require.Equal(t, route.Offset(3), r.commit().TargetOffset)
}

func TestAcknowledgementWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 3, Plan{})
	r.openAt()
	r.feed(6, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}}, made{base: 4, numbers: []int{4}}, made{base: 5, numbers: []int{5}})
	r.take(false, 2, 2)
	r.take(false, 3, 3)
	r.take(true, 4, 4)
	r.take(false, 5, 5)
	r.ok(false, 2)
	r.ok(false, 3)
	require.Equal(t, route.Offset(2), r.commit().SourceOffset, "acks=1 moved the position")
	r.ok(true, 4)
	require.Equal(t, route.Offset(5), r.commit().SourceOffset)
	r.ok(false, 5)
	require.Zero(t, r.lane.Next(), "closes a window that may go on")
	r.after(windowQuiet)
	woken := r.sinks
	r.lane.closeWindow()
	require.Greater(t, r.sinks, woken)
	r.take(true, 5, 5)
	r.ok(true, 5)
	require.Equal(t, route.Offset(6), r.commit().SourceOffset)
	require.Zero(t, r.lane.Next())
}

func TestWindowEndsBeforeTheLaneIsFull(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 100, Plan{})
	r.openAt()
	for i := range 3 {
		r.feed(route.Offset(3+i), made{base: route.Offset(2 + i), numbers: []int{2 + i}, pad: leastLimit / 10})
	}
	r.take(false, 2, 2)
	r.take(false, 3, 3)
	r.take(true, 4, 4) // a quarter of what the lane may hold
	for i := range 3 {
		r.ok(i == 2, route.Offset(2+i))
	}
	require.Zero(t, r.pool.Budget().Used())
}

func TestSentAllEndsTheWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 2, Plan{})
	r.openAt()
	r.feed(5, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}}, made{base: 4, numbers: []int{4}})
	r.take(false, 2, 2)
	r.lane.SentAll()
	r.take(false, 3, 3)
	r.take(true, 4, 4)
	r.ok(true, 2)
	require.Equal(t, route.Offset(3), r.commit().SourceOffset)
	r.ok(false, 3)
	r.ok(true, 4)
}

func TestDrainClosesTheWindowAndIsClean(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 10, Plan{})
	r.openAt()
	r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
	r.take(false, 2, 2)
	drained := r.lane.close()
	require.NotPanics(t, func() { r.lane.close() })
	r.ok(false, 2)
	requireOpen(t, drained)
	r.take(true, 2, 2)
	r.ok(true, 2)
	requireClosed(t, drained)
	require.Zero(t, r.lane.Next(), "sends more while it closes")
	require.NoError(t, r.mirror.Drain(t.Context(), t.Context(), r.lane))
	c := r.commit()
	require.Equal(t, route.Offset(3), c.SourceOffset)
	require.True(t, c.Clean)
	require.Equal(t, "w1", c.Writer)
}

func TestDrainEndsInTimeAndIsNotClean(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
	b := r.take(true, 2, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, r.mirror.Drain(ctx, t.Context(), r.lane))
	require.False(t, r.commit().Clean)
	r.mirror.Remove(r.lane)
	require.Positive(t, r.pool.Budget().Used())
	require.Equal(t, []int{2}, numbersOf(t, b), "memory given back while a connection may read it")
	r.ok(true, 2)
	require.Zero(t, r.pool.Budget().Used())
}

// Many lanes leave together, one after the other: those that are through must not pass for unanswered because one before them was late.
func TestDrainedLaneIsCommittedAlsoAfterTheDeadline(t *testing.T) {
	t.Parallel()
	for range 20 {
		r := newRig(t, firstAt(0), 1, Plan{})
		r.openAt()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, r.mirror.Drain(ctx, t.Context(), r.lane))
		require.NotEmpty(t, r.saved)
		require.True(t, r.saved[len(r.saved)-1].Clean)
	}
}

func requireOpen(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
		require.Fail(t, "drained too early")
	default:
	}
}

func requireClosed(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	default:
		require.Fail(t, "not drained")
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.hint(fresh)
	r.feed(2, made{base: 0, numbers: []int{0, 1}})
	r.take(true, 0, 0, 1)
	require.Equal(t, route.NoOffset, r.commit().SourceOffset, "committed before an acknowledgement")
	r.ok(true, 0)
	r.saveErr = errDisk
	require.ErrorIs(t, r.mirror.Commit(t.Context()), errDisk)
	require.Equal(t, route.Offset(0), r.lane.Status().Committed)
	r.after(time.Second)
	require.Positive(t, r.lane.Status().Uncommitted)
	r.saveErr = nil
	c := r.commit()
	require.Equal(t, route.Offset(2), c.SourceOffset)
	require.True(t, c.Opened)
	require.False(t, c.Clean)
	require.Equal(t, route.Offset(2), r.lane.Status().Committed)
	require.Zero(t, r.lane.Status().Uncommitted)
	r.commit()
	require.Len(t, r.saved, 1, "committed what had not changed")
}

func TestOvertakenCheckpointIsNotCalledCommitted(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.saveErr = &offsets.ConflictError{Refused: []offsets.Refused{{Checkpoint: firstAt(2), Reason: "newer epoch"}}}
	require.NoError(t, r.mirror.Commit(t.Context()))
	require.Equal(t, route.Offset(0), r.lane.Status().Committed)
}

func TestTakeOverFromWhatTheTargetHas(t *testing.T) {
	t.Parallel()
	opened := firstAt(2)
	opened.Sequence, opened.Opened, opened.AckedAt, opened.TargetOffset = 2, true, time.Unix(1_700_000_000, 0), 2
	feed := func(r *rig) {
		r.feed(8, made{base: 2, numbers: []int{2, 3, 4}}, made{base: 5, numbers: []int{5, 6}}, made{base: 7, numbers: []int{7}})
	}
	replicated := func(first, last int32) offsets.Hint {
		h := stands(last)
		h.Read, h.First = true, first
		return h
	}
	for _, row := range []struct {
		name  string
		at    offsets.Checkpoint
		hints []offsets.Hint
		check func(r *rig)
	}{
		{"nothing beyond the checkpoint", opened, []offsets.Hint{stands(1)}, func(r *rig) { r.take(true, 2, 2, 3, 4) }},
		{"a batch beyond it", opened, []offsets.Hint{stands(4)}, func(r *rig) { r.take(true, 5, 5, 6) }},
		{"everything: the last again", opened, []offsets.Hint{stands(7)}, func(r *rig) { r.take(true, 7, 7) }},
		{"in the middle of a batch", opened, []offsets.Hint{stands(5)}, func(r *rig) { r.take(true, 6, 6) }},
		{"unopened and one batch stored: the log must show it", firstAt(2), []offsets.Hint{stands(2), replicated(0, 2)}, func(r *rig) { r.take(true, 3, 5, 6) }},
		{"unopened, stored and not replicated: waits", firstAt(2), []offsets.Hint{stands(2), replicated(-1, 2)}, func(r *rig) {
			require.Equal(t, -1, r.lane.Next())
		}},
		{"only the log remembers: never again", opened, []offsets.Hint{{Known: true, Last: 7, First: 7, Read: true, Forgotten: true}}, func(r *rig) {
			require.Zero(t, r.lane.Next())
			require.Contains(t, r.lane.Status().Reason, "uncertified")
			r.feed(9, made{base: 8, numbers: []int{8}})
			r.take(true, 8, 8)
		}},
		{"less than acknowledged: asks again", opened, []offsets.Hint{stands(0), stands(0), stands(1)}, func(r *rig) { r.take(true, 2, 2, 3, 4) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, row.at, 1, Plan{IDExpiration: 24 * time.Hour})
			feed(r)
			for _, h := range row.hints {
				r.hint(h)
			}
			row.check(r)
			if r.lane.out.flying.len() > 0 {
				r.ok(true, 0)
			}
		})
	}
}

func TestRefusedRepeatGoesAgainWithTheTargetsBoundaries(t *testing.T) {
	t.Parallel()
	at := firstAt(0)
	at.Opened, at.AckedAt = true, time.Unix(1_700_000_000, 0)
	r := newRig(t, at, 1, Plan{})
	r.feed(5, made{base: 0, numbers: []int{0, 1}}, made{base: 2, numbers: []int{2, 3, 4}})
	r.hint(stands(4))
	r.take(true, 2, 2, 3, 4)
	r.fail(route.Order)
	r.lane.Next()
	require.Equal(t, offsets.AskLog, askOf(r))
	h := stands(4)
	h.Read, h.First = true, 1
	r.lane.Hint(h, nil)
	r.take(true, 1, 1, 2, 3, 4)
	r.ok(true, 1)
	require.Equal(t, route.Offset(5), r.commit().SourceOffset)
	require.EqualValues(t, 5, r.lane.Status().Records)
}

func askOf(r *rig) offsets.Question {
	q, _ := r.lane.Inquiry()
	return q.Question
}

func TestLostTargetIsBelievedAfterAMinuteOnly(t *testing.T) {
	t.Parallel()
	at := firstAt(10)
	at.Sequence, at.Opened, at.AckedAt = 10, true, time.Unix(1_700_000_000, 0)
	r := newRig(t, at, 1, Plan{})
	begun := r.clock
	for r.lane.Status().State != Halted {
		r.hint(stands(4))
		require.Less(t, r.clock.Sub(begun), 2*time.Minute)
	}
	require.GreaterOrEqual(t, r.clock.Sub(begun), doubtFor)
	require.Equal(t, 1, r.told(events.TargetChanged))

	r.lane.Retry()
	require.NotEqual(t, Halted, r.lane.Status().State)
	for r.lane.Status().State != Halted {
		r.hint(stands(4))
	}
	require.Equal(t, 1, r.told(events.TargetChanged), "told at each retry: a store keeps a thousand errors, and loses others to these")

	r.lane.Retry()
	r.hint(stands(4))
	r.after(time.Hour) // the process slept
	r.hint(stands(4))
	require.NotEqual(t, Halted, r.lane.Status().State, "two answers with an hour between them are believed")
	r.hint(stands(9))
	require.Equal(t, certifying, r.lane.out.phase)
}

func TestSilentIDIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{IDExpiration: time.Hour})
	r.openAt()
	r.after(31 * time.Minute)
	r.feed(3, made{base: 2, numbers: []int{2}})
	h := stands(1)
	r.hint(h)
	r.take(true, 2, 2)
	r.ok(true, 2)
	require.Equal(t, open, r.lane.out.phase)
}

// The clock was set back by two days: by it the target cannot have forgotten the id, and that it has was taken for a loss of the target.
func TestAcknowledgementInTheFutureProvesNothing(t *testing.T) {
	t.Parallel()
	at := firstAt(2)
	at.Sequence, at.TargetOffset, at.Opened, at.AckedAt = 2, 2, true, time.Unix(1_700_000_000, 0).Add(48*time.Hour)
	r := newRig(t, at, 1, Plan{IDExpiration: 24 * time.Hour})
	forgotten := offsets.Hint{First: -1, Timestamp: -1, End: 2}
	r.hint(forgotten)
	forgotten.Read, forgotten.Forgotten = true, true
	r.hint(forgotten)
	r.feed(3, made{base: 2, numbers: []int{2}})
	r.take(true, 2, 2)
	r.ok(true, 2)
	require.Equal(t, route.Offset(3), r.commit().SourceOffset)
}

func TestUnreachableTargetGivesMemoryToOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.feed(1, made{base: 0, numbers: []int{0}, pad: 2 * minFetch})
	for range 3 {
		require.Equal(t, offsets.AskProducer, askOf(r))
		r.lane.Hint(offsets.Hint{}, fault(route.Unreachable, "UNREACHABLE"))
		r.after(3 * time.Second)
	}
	require.Zero(t, r.pool.Budget().Used())
	require.Equal(t, Degraded, r.lane.Status().State)
	at, _, _ := r.lane.Want()
	require.Zero(t, at.Offset)
}

func TestStatusTellsLag(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	require.EqualValues(t, -1, r.lane.Status().LagRecords)
	r.lane.Extent(route.Extent{Start: 0, LastStable: 90, End: 100})
	require.EqualValues(t, 90, r.lane.Status().LagRecords)
	r.after(5 * time.Second)
	require.InDelta(t, 5, r.lane.Status().LagSeconds, 0.1)
	require.Equal(t, Starting, r.lane.Status().State)
	r.openAt()
	require.Zero(t, r.lane.Status().LagRecords)
	require.Equal(t, Mirroring, r.lane.Status().State)
	problems, err := testutil.GatherAndLint(r.reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	r.mirror.Close(r.lane)
	require.Equal(t, Draining, r.lane.Status().State)
	r.mirror.Remove(r.lane)
	n, err := testutil.GatherAndCount(r.reg, "causeway_lag_records", "causeway_records_total", "causeway_batches_total")
	require.NoError(t, err)
	require.Zero(t, n, "a partition that left leaves series behind")
}

func TestRunServesLanesUntilItEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.mirror.Run(ctx) }() // owned by the test, which waits for it
	s := r.pool.Get(1000, 0)
	n := copy(s.Bytes(), made{base: 0, numbers: []int{0, 1}}.bytes())
	r.lane.Append(0, s, []batch.Batch{s.Bytes()[:n:n]}, route.Position{Offset: 2, LeaderEpoch: -1}, route.Extent{LastStable: 2, End: 2})
	s.Release()
	r.lane.Hint(fresh, nil)
	require.Eventually(t, func() bool { return r.lane.Next() > 0 }, 10*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

func TestConfigReportsAllFaults(t *testing.T) {
	t.Parallel()
	require.NoError(t, DefaultConfig().Validate())
	err := Config{}.Validate()
	for _, name := range []string{"streams", "lane bytes", "ack_window", "commit_interval", "hold for"} {
		require.ErrorContains(t, err, name)
	}
}

// A commit that had waited six seconds for a store that was away was followed by none for a minute.
func TestCommitThatWaitedForTheStoreDelaysTheNextByLittle(t *testing.T) {
	t.Parallel()
	c := Config{CommitInterval: 5 * time.Second}
	require.Equal(t, 5*time.Second, c.commitPause(time.Millisecond))
	require.Equal(t, 8*time.Second, c.commitPause(800*time.Millisecond), "a store that is slow has other things to do, too")
	require.Equal(t, 10*time.Second, c.commitPause(6*time.Second))
	require.Equal(t, time.Minute, Config{CommitInterval: time.Minute}.commitPause(6*time.Second))
}
