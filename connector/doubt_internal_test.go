package connector

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// holed is a store in which some checkpoints are gone or can't be read.
type holed struct {
	offsets.Store

	without map[string]error // by topic; nil: gone
}

func (s *holed) Load(ctx context.Context, parts []route.Partition) (map[route.Partition]offsets.Checkpoint, error) {
	known, err := s.Store.Load(ctx, parts)
	for _, p := range parts {
		if fault, hole := s.without[p.Topic]; hole && fault != nil {
			return nil, fault
		} else if hole {
			delete(known, p)
		}
	}
	return known, err
}

// An idle partition saves nothing, so that its position was deleted showed when the next record came, or at the next start.
func TestPositionOfAnIdlePartitionIsReadAgainInTime(t *testing.T) {
	t.Parallel()
	store := &holed{Store: stored(t), without: map[string]error{}}
	c := idleOn(t, store, io.Discard)
	for _, topic := range []string{"t", "u", "v", "w"} {
		pair, _ := oneOf(t, c, topic, nil)
		require.NoError(t, c.startTopic(t.Context(), pair))
	}
	now := time.Now()
	due := map[route.Partition]doubt{}
	var checks round
	c.doubted(due, &checks, now)
	require.Len(t, due, 4, "each is read")
	parts, err := c.reread(t.Context(), due)
	require.NoError(t, err)
	require.Empty(t, parts)
	clear(due)
	c.doubted(due, &checks, now.Add(checkEvery))
	require.Empty(t, due, "too early")
	c.doubted(due, &checks, now.Add(checkEvery+time.Second))
	require.Len(t, due, 4)

	store.without["t"] = nil
	parts, err = c.reread(t.Context(), due)
	require.NoError(t, err)
	require.Len(t, parts, 1, "the one that is gone")
	require.Equal(t, "t", parts[0].source.Topic)

	store.without["u"] = offsets.ErrCorrupt
	parts, err = c.reread(t.Context(), due)
	require.ErrorIs(t, err, offsets.ErrCorrupt)
	require.Len(t, parts, 1, "the one that can't be read; it says nothing of the others")
	require.Equal(t, "u", parts[0].source.Topic)
}

// While the store was away an operator set the position: what had been in doubt before then was compared with the new epoch, and the partition
// was drained and started once more.
func TestPartitionThatBeganAnewMeanwhileIsNotStartedOnceMore(t *testing.T) {
	t.Parallel()
	c := idleOn(t, stored(t), io.Discard)
	pair, old := one(t, c, nil)
	require.NoError(t, c.startTopic(t.Context(), pair))
	due := map[route.Partition]doubt{}
	var checks round
	c.doubted(due, &checks, time.Now())
	require.Len(t, due, 1)

	known, err := c.deps.Store.Load(t.Context(), []route.Partition{old.source})
	require.NoError(t, err)
	was := known[old.source]
	next := was
	next.ProducerEpoch++
	require.NoError(t, c.deps.Store.Begin(t.Context(), &was, next))
	c.fetchers.Remove(old.source)
	old.slot.Detach()
	c.mirror.Remove(old.lane)
	again := &partition{source: old.source, target: old.target, begun: true, left: old.left}
	c.parts[old.source], pair.parts = again, []*partition{again}
	require.NoError(t, c.startTopic(t.Context(), pair))
	require.NotNil(t, again.lane)

	parts, err := c.reread(t.Context(), due)
	require.NoError(t, err)
	require.Empty(t, parts)
}
