package connector

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// positionOf is a partition's stored position.
func positionOf(t *testing.T, c *Connector, p *partition) offsets.Checkpoint {
	t.Helper()
	known, err := c.deps.Store.Load(t.Context(), []route.Partition{p.source})
	require.NoError(t, err)
	return known[p.source]
}

// A topic that was made anew halts by policy, and is told once, however often the start is tried.
func TestRecreatedTopicHaltsByPolicy(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	c.cfg.On.Recreated = mirror.Halt
	pair, part := one(t, c, nil)
	at := positionOf(t, c, part)
	at.SourceTopicID, pair.source.ID = route.TopicID{1}, route.TopicID{2}
	for range 3 {
		next, err := c.continueFrom(t.Context(), pair, at, mirror.Anew{})
		var halt *haltError
		require.ErrorAs(t, err, &halt)
		require.ErrorContains(t, err, "reset the position to go on")
		require.Equal(t, at, next)
	}
	told := c.deps.Events.Since(0)
	require.Len(t, told, 1)
	require.Equal(t, events.TopicRecreated, told[0].Type)
	require.Equal(t, events.Error, told[0].Severity)
}

// A new epoch begins where the source's log parts from what was read, at most once for each time that this is found.
func TestPartedSourceGoesOnWhereItParts(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, part := one(t, c, nil)
	was := positionOf(t, c, part)
	at := was
	at.SourceOffset, at.TargetOffset, at.Sequence, at.LeaderEpoch = 50, 50, 50, 2
	require.NoError(t, c.deps.Store.Begin(t.Context(), &was, at))
	anew := mirror.Anew{Cause: mirror.Parted, At: 40, ProducerID: at.ProducerID, ProducerEpoch: at.ProducerEpoch}

	next, err := c.continueFrom(t.Context(), pair, at, anew)
	require.NoError(t, err)
	require.Equal(t, route.Offset(40), next.SourceOffset)
	require.Equal(t, at.ProducerEpoch+1, next.ProducerEpoch)
	require.Equal(t, []int32{0, -1}, []int32{next.Sequence, next.LeaderEpoch})
	told := c.deps.Events.Since(0)
	require.Len(t, told, 1)
	require.Equal(t, events.SourceDiverged, told[0].Type)
	require.Equal(t, []route.Offset{40, 49}, []route.Offset{*told[0].FirstOffset, *told[0].LastOffset})

	again, err := c.continueFrom(t.Context(), pair, next, anew)
	require.NoError(t, err)
	require.Equal(t, next, again, "somebody has seen to it already")
	anew.At, anew.ProducerID, anew.ProducerEpoch = 45, next.ProducerID, next.ProducerEpoch
	behind, err := c.continueFrom(t.Context(), pair, next, anew)
	require.NoError(t, err)
	require.Equal(t, route.Offset(40), behind.SourceOffset, "what is not acknowledged yet is not skipped")
}

// What excuses an offset is stored before it, once; a record before which not all is stored is not left out yet.
func TestRecordThatIsLeftOutIsToldBeforeItsOffsetIsStored(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, part := one(t, c, nil)
	at := positionOf(t, c, part)
	anew := mirror.Anew{
		Cause: mirror.LeftOut, At: at.SourceOffset + 1, Kind: "oversized", Why: "too large", LeaderEpoch: 3,
		ProducerID: at.ProducerID, ProducerEpoch: at.ProducerEpoch,
	}
	same, err := c.continueFrom(t.Context(), pair, at, anew)
	require.NoError(t, err)
	require.Equal(t, at, same)
	require.Empty(t, c.deps.Events.Since(0))

	anew.At = at.SourceOffset
	other := at
	other.TargetOffset++
	for range 2 { // what is stored is not what was loaded
		_, err = c.continueFrom(t.Context(), pair, other, anew)
		require.ErrorIs(t, err, offsets.ErrConflict)
	}
	next, err := c.continueFrom(t.Context(), pair, at, anew)
	require.NoError(t, err)
	require.Equal(t, []any{at.SourceOffset + 1, at.ProducerEpoch + 1, int32(0), int32(3)},
		[]any{next.SourceOffset, next.ProducerEpoch, next.Sequence, next.LeaderEpoch})
	told := c.deps.Events.Since(0)
	require.Len(t, told, 1, "told once, however often it is tried")
	require.Equal(t, events.RangeSkipped, told[0].Type)
	require.Equal(t, events.Error, told[0].Severity)
	require.Equal(t, []route.Offset{at.SourceOffset, at.SourceOffset}, []route.Offset{*told[0].FirstOffset, *told[0].LastOffset})
	require.Equal(t, "oversized: too large", told[0].Reason)
	again, err := c.continueFrom(t.Context(), pair, next, anew)
	require.NoError(t, err)
	require.Equal(t, next, again)

	back := next // an operator has reset it, and the record is refused again
	back.SourceOffset, back.ProducerEpoch = at.SourceOffset, next.ProducerEpoch+1
	require.NoError(t, c.deps.Store.Begin(t.Context(), &next, back))
	anew.ProducerEpoch = back.ProducerEpoch
	_, err = c.continueFrom(t.Context(), pair, back, anew)
	require.NoError(t, err)
	require.Len(t, c.deps.Events.Since(0), 2, "left out without a word")
}

// A new epoch begins behind what the source has deleted, and the event that excuses it is stored before. A gap before which not all is stored yet is
// found again.
func TestNewEpochBeginsBehindDeletedRecords(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, part := one(t, c, nil)
	at := positionOf(t, c, part)
	anew := mirror.Anew{
		Cause: mirror.Gone, At: at.SourceOffset + 1, To: at.SourceOffset + 9, Lost: 8, ProducerID: at.ProducerID, ProducerEpoch: at.ProducerEpoch,
	}
	same, err := c.continueFrom(t.Context(), pair, at, anew)
	require.NoError(t, err)
	require.Equal(t, at, same)

	anew.At = at.SourceOffset
	next, err := c.continueFrom(t.Context(), pair, at, anew)
	require.NoError(t, err)
	require.Equal(t, []any{anew.To, at.ProducerEpoch + 1, int32(0), int32(-1), at.TargetOffset},
		[]any{next.SourceOffset, next.ProducerEpoch, next.Sequence, next.LeaderEpoch, next.TargetOffset})
	require.Equal(t, next, positionOf(t, c, part))
	again, err := c.continueFrom(t.Context(), pair, next, anew)
	require.NoError(t, err)
	require.Equal(t, next, again, "somebody has seen to it already")
}

// What the target has lost, or had before it was made anew, is left behind by policy, with an event; elsewhere it halts.
func TestTargetThatWasMadeAnewIsGoneOnWithByPolicy(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	c.cfg.On.TargetLost = mirror.Continue
	pair, part := one(t, c, nil)
	at := positionOf(t, c, part)
	at.TargetTopicID, pair.target.ID = route.TopicID{1}, route.TopicID{2}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.continueFrom(ctx, pair, at, mirror.Anew{})
	require.ErrorContains(t, err, "target: ", "its end can't be asked for here")
	c.renewals.replace(pair.target.ID)
	_, err = c.continueFrom(t.Context(), pair, at, mirror.Anew{})
	require.ErrorContains(t, err, "which it had before it was made anew")
	require.Empty(t, c.deps.Events.Since(0))
}
