package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// beside is a checkpoint of a partition that another owner is at work on.
func beside() offsets.Checkpoint {
	at := firstAt(100)
	at.Sequence, at.Opened, at.TargetOffset = 100, true, 100
	return at
}

// moves answers a trailing lane's next question, after the time that it waits, with a target that has gone on.
func (r *rig) moves(last int32) {
	r.t.Helper()
	r.hint(stands(last))
	require.LessOrEqual(r.t, r.lane.Next(), 0, "a lane that trails has sent something")
}

// TestStandbySendsNothingWhileTheOtherOwnerDoes lets a lane trail, and take over when the target stands still.
func TestStandbySendsNothingWhileTheOtherOwnerDoes(t *testing.T) {
	t.Parallel()
	r := newRig(t, beside(), 1, Plan{Company: Standby})
	for n := 100; n < 160; n += 10 {
		r.feed(route.Offset(n+10), made{base: route.Offset(n), numbers: numbers(n, 10)})
		r.moves(int32(n + 4))
	}
	state, why := r.lane.State()
	require.Equal(t, Mirroring, state)
	require.Equal(t, whyTrailing, why)
	require.LessOrEqual(t, r.lane.out.queue.len(), 2, "what the target has is kept")
	began := r.clock
	for r.lane.Next() <= 0 {
		r.hint(stands(154))
	}
	require.LessOrEqual(t, r.clock.Sub(began), 3*trailEvery, "the other owner is waited for too long")
	b, all := r.lane.Take()
	require.True(t, all)
	require.Equal(t, int32(155), b.BaseSequence())
	r.ok(all, 155)
	require.Equal(t, route.Offset(160), r.commit().SourceOffset)
	state, why = r.lane.State()
	require.Equal(t, Mirroring, state)
	require.Empty(t, why)
}

// TestNewOwnerSendsBesideTheFormerOne has a lane repeat what the former owner sends as soon as it is level, and trail when it is overtaken all the same.
func TestNewOwnerSendsBesideTheFormerOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, beside(), 1, Plan{Company: FormerOwner})
	r.feed(110, made{base: 100, numbers: numbers(100, 10)})
	r.moves(114)
	r.feed(130, made{base: 110, numbers: numbers(110, 10)}, made{base: 120, numbers: numbers(120, 10)})
	state, _ := r.lane.State()
	require.Equal(t, Starting, state, "the former owner would end now")
	r.hint(stands(119))
	b, all := r.lane.Take()
	require.Equal(t, int32(120), b.BaseSequence())
	r.lane.Answer(all, route.NoOffset, fault(route.Order, "OUT_OF_ORDER_SEQUENCE_NUMBER"))
	r.moves(189)
	r.feed(200, made{base: 130, numbers: numbers(130, 70)})
	r.moves(194)
	state, why := r.lane.State()
	require.Equal(t, Mirroring, state)
	require.Equal(t, whyTrailing, why, "it is as level as it can be")
	for r.lane.Next() <= 0 {
		r.hint(stands(194))
	}
	b, all = r.lane.Take()
	require.Equal(t, int32(195), b.BaseSequence())
	r.ok(all, 195)
	state, why = r.lane.State()
	require.Equal(t, Mirroring, state)
	require.Empty(t, why)
}

// TestOvertakenOwnerTrails refuses what another owner has sent long ago, to a lane that was the first before.
func TestOvertakenOwnerTrails(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(100), 1, Plan{Company: Standby})
	r.hint(fresh)
	r.feed(110, made{base: 100, numbers: numbers(100, 10)})
	_, all := r.lane.Take()
	r.ok(all, 0)
	r.feed(120, made{base: 110, numbers: numbers(110, 10)})
	r.lane.Take()
	r.lane.Answer(true, route.NoOffset, fault(route.Order, "OUT_OF_ORDER_SEQUENCE_NUMBER"))
	before := r.at()
	r.moves(39)
	r.feed(150, made{base: 120, numbers: numbers(120, 30)})
	r.moves(44)
	require.Greater(t, r.at().Offset, before.Offset, "what was read is read again")
	for r.lane.Next() <= 0 {
		r.hint(stands(44))
	}
	b, _ := r.lane.Take()
	require.Equal(t, int32(45), b.BaseSequence())
	r.ok(true, 45)
	require.Equal(t, route.Offset(150), r.commit().SourceOffset)
}

// TestStandbyBeginsAgainAtWhatTheOtherOwnerHasStored cuts the target's log behind a lane that has trailed for long.
func TestStandbyBeginsAgainAtWhatTheOtherOwnerHasStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, beside(), 1, Plan{Company: Standby})
	for n := 100; n < 160; n += 10 {
		r.feed(route.Offset(n+10), made{base: route.Offset(n), numbers: numbers(n, 10)})
		r.moves(int32(n + 9))
	}
	_, doubted := r.lane.Doubted()
	require.True(t, doubted, "nobody was asked what is stored")
	stored := beside()
	stored.SourceOffset, stored.Sequence, stored.TargetOffset = 140, 140, 140
	other := stored
	other.ProducerEpoch++
	r.lane.Follow(other)
	require.Equal(t, route.Offset(100), r.lane.Status().Acked, "another epoch's position was taken")
	r.lane.Follow(stored)
	require.Equal(t, route.Offset(140), r.lane.Status().Acked)
	require.Equal(t, route.Offset(160), r.at().Offset, "what was read is read again")
	r.moves(144) // a new leader lacks what was not replicated
	require.Equal(t, route.Offset(140), r.at().Offset)
	r.feed(160, made{base: 140, numbers: numbers(140, 10)}, made{base: 150, numbers: numbers(150, 10)})
	for r.lane.Next() <= 0 {
		r.hint(stands(144))
	}
	b, _ := r.lane.Take()
	require.Equal(t, int32(145), b.BaseSequence())
	r.ok(true, 145)
}

// TestOvertakenOwnerHasNothingLeftToStore acknowledges what another owner stores first: no alert shall tell that positions can't be stored.
func TestOvertakenOwnerHasNothingLeftToStore(t *testing.T) {
	t.Parallel()
	r := newRig(t, beside(), 1, Plan{Company: Standby})
	r.feed(110, made{base: 100, numbers: numbers(100, 10)})
	for r.lane.Next() <= 0 {
		r.hint(stands(99))
	}
	r.lane.Take()
	r.ok(true, 100)
	c, changed := r.lane.takeCheckpoint()
	require.True(t, changed)
	r.lane.stored(c, true, nil)
	r.feed(120, made{base: 110, numbers: numbers(110, 10)})
	r.lane.Take()
	r.lane.Answer(true, route.NoOffset, fault(route.Order, "OUT_OF_ORDER_SEQUENCE_NUMBER"))
	r.moves(139)
	stored := c
	stored.SourceOffset, stored.Sequence, stored.TargetOffset = 120, 120, 120
	r.lane.Follow(stored)
	require.Equal(t, route.Offset(120), r.lane.Status().Acked)
	r.after(time.Hour)
	require.Zero(t, r.lane.Status().Uncommitted)
}

// TestLaneOfOneOwnerWaitsForNobody holds that nothing of this concerns partitions that have one owner.
func TestLaneOfOneOwnerWaitsForNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, beside(), 1, Plan{})
	r.feed(110, made{base: 100, numbers: numbers(100, 10)})
	r.hint(stands(104))
	require.Positive(t, r.lane.Next())
}

// TestOwnersThatTrailBreakNoPromise has the model's owners stand by for each other.
func TestOwnersThatTrailBreakNoPromise(t *testing.T) {
	t.Parallel()
	seeds := uint64(150)
	if testkit.Long() {
		seeds = 300
	}
	for seed := range seeds {
		if err := run(t, seed, variant{trails: true}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// numbers are those of n records, from first on.
func numbers(first, n int) (all []int) {
	for i := range n {
		all = append(all, first+i)
	}
	return all
}
