package mirror

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/route"
)

const badTime = "INVALID_TIMESTAMP"

func (r *rig) refuse(code string) { r.lane.Answer(true, route.NoOffset, fault(route.Refused, code)) }

var four = made{base: 0, numbers: []int{0, 1, 2, 3}}

// One record of a batch is refused: those before it are stored, it alone is named, and nothing behind it is sent in this epoch.
func TestOneRefusedRecordOfABatchIsLeftOutAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{On: Policies{Refused: Skip}})
	r.hint(fresh)
	r.feed(4, four)
	r.take(true, 0, 0, 1, 2, 3)
	r.refuse(badTime)
	require.NotEqual(t, Halted, r.lane.Status().State)
	r.hint(fresh)
	r.feed(4, four)
	r.take(true, 0, 0)
	r.ok(true, 0)
	r.take(true, 1, 1)
	r.take(true, 2, 2)
	r.take(true, 3, 3)
	r.ok(true, 1)
	r.refuse(badTime)
	r.fail(route.Order)
	r.stale(0)
	r.hint(stands(1))
	a := r.stale(LeftOut)
	require.Equal(t, []any{route.Offset(2), "refused", int64(7)}, []any{a.At, a.Kind, a.ProducerID})
	require.Contains(t, a.Why, badTime)
	require.Equal(t, route.Offset(2), r.commit().SourceOffset)
	_, _, room := r.lane.Want()
	require.Zero(t, room, "reads behind a record that is to be left out")
	require.Zero(t, r.lane.Next())
	require.Zero(t, r.told(events.PartitionHalted))

	behind := firstAt(3)
	behind.ProducerEpoch = 1
	next := newRig(t, behind, 1, Plan{Left: a})
	next.hint(fresh)
	require.Equal(t, "the record at offset 2 was left out: refused", next.lane.Status().Reason)
}

// The owner was killed with records stored beyond the checkpoint. The next one proves them, and leaves out the record behind them.
func TestRecordIsLeftOutBehindWhatAnotherOwnerStored(t *testing.T) {
	t.Parallel()
	at := firstAt(0)
	at.Opened, at.AckedAt = true, time.Unix(1_700_000_000, 0)
	r := newRig(t, at, 1, Plan{On: Policies{Refused: Skip}, IDExpiration: 24 * time.Hour})
	r.hint(stands(1))
	r.feed(4, four)
	r.take(true, 2, 2, 3)
	r.refuse(badTime)
	r.hint(stands(1))
	r.feed(4, four)
	r.take(true, 2, 2)
	r.refuse(badTime)
	r.hint(stands(1))
	r.feed(4, four)
	r.take(true, 0, 0, 1) // the last batch again, as far as it is known
	r.fail(route.Order)   // its boundaries were others
	h := shows(1, 1)
	r.hint(h)
	r.feed(4, four)
	r.stale(0)
	r.take(true, 1, 1)
	require.Equal(t, route.NoOffset, r.commit().SourceOffset)
	r.ok(true, 1)
	require.Equal(t, route.Offset(2), r.stale(LeftOut).At)
	require.Equal(t, route.Offset(2), r.commit().SourceOffset)
}

// Another owner had the record taken meanwhile: it is not left out.
func TestRecordThatWasTakenAfterAllIsNotLeftOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{On: Policies{Oversized: Skip}})
	r.openAt()
	r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
	r.take(true, 2, 2)
	r.take(true, 3, 3)
	r.refuse(codeTooLarge)
	r.refuse(codeTooLarge)
	r.hint(shows(2, 2))
	r.stale(0)
	r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
	r.take(true, 3, 3)
	r.ok(true, 3)
	require.Equal(t, route.Offset(4), r.commit().SourceOffset)
	r.stale(0)
}

// The lane's memory serves others as soon as it is read again, so the record is kept apart.
func TestDeadLetterIsKept(t *testing.T) {
	t.Parallel()
	for policy, kept := range map[Policy]bool{Skip: false, DeadLetter: true} {
		r := newRig(t, firstAt(0), 1, Plan{On: Policies{Oversized: policy}})
		r.openAt()
		r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
		r.take(true, 2, 2)
		r.refuse(codeTooLarge)
		r.hint(stands(1))
		a := r.stale(LeftOut)
		require.Equal(t, "oversized", a.Kind)
		require.Equal(t, kept, a.Record != nil)
		if kept {
			require.Equal(t, []int{2}, numbersOf(t, a.Record))
		}
	}
}

// The source deleted a record that was to be left out before the lane came to it: it read nothing any more.
func TestRefusedRecordThatTheSourceDeletes(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{On: Policies{Refused: Skip}})
	r.openAt()
	r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
	r.take(true, 2, 2)
	r.refuse(badTime)
	require.True(t, r.lane.in.aside.alone)
	_, generation, _ := r.lane.Want()
	r.lane.in.aside.first, r.lane.in.aside.next = 3, 4 // as if the one behind it had been refused
	r.lane.Fail(generation, truncatedTo(20))
	r.hint(stands(1))
	r.renew(2, 20)
	_, _, room := r.lane.Want()
	require.Positive(t, room)
	r.stale(0)
}

func TestRightsThatAreMissingAlwaysHalt(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{On: Policies{Refused: Skip, Oversized: Skip}})
	r.hint(fresh)
	r.feed(4, four)
	r.take(true, 0, 0, 1, 2, 3)
	r.refuse("TOPIC_AUTHORIZATION_FAILED")
	r.standsStill("TOPIC_AUTHORIZATION_FAILED")
}

// A partition that stood still for a batch above the target's limit sent it again every ten seconds.
func TestBatchAboveTheLimitIsNotSentAgainByTime(t *testing.T) {
	t.Parallel()
	for limit, again := range map[int]bool{batch.HeaderSize + 5: false, 0: true, 1 << 20: true} {
		r := newRig(t, firstAt(0), 1, Plan{MaxBatchBytes: limit})
		r.hint(fresh)
		r.feed(1, made{base: 0, numbers: []int{0}})
		r.take(true, 0, 0)
		r.refuse(codeTooLarge)
		r.standsStill(codeTooLarge)
		r.lane.retryByTime()
		require.Equal(t, again, r.lane.Next() < 0, "limit %d", limit)
		if !again {
			r.lane.Retry()
			require.Negative(t, r.lane.Next(), "an operator's wish")
		}
	}
}

// Owners of all epochs, killed at any point, leave out what the target refuses, and nothing else; no record is stored twice or out of order.
func TestTargetHoldsEveryRecordOnceButThoseItRefuses(t *testing.T) {
	t.Parallel()
	seeds := uint64(100)
	if testkit.Long() {
		seeds = 5000
	}
	for seed := range seeds {
		if err := run(t, seed, variant{refusals: true}); err != nil {
			require.NoError(t, fmt.Errorf("seed %d: %w", seed, err))
		}
	}
}
