package connector

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// betweenStore calls between once, after a load.
type betweenStore struct {
	offsets.Store

	between func()
}

func (s *betweenStore) Load(ctx context.Context, ps []route.Partition) (map[route.Partition]offsets.Checkpoint, error) {
	found, err := s.Store.Load(ctx, ps)
	if then := s.between; then != nil {
		s.between = nil
		then()
	}
	return found, err
}

// A claim that was slow must not make a checkpoint clean again which another worker has marked as in use meanwhile: after a crash of that worker
// a new epoch would be taken for harmless.
func TestSlowClaimDoesNotMakeCleanWhatIsInUse(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	_, part := one(t, c, func(at *offsets.Checkpoint) { at.Clean, at.Writer = true, "a" })
	store := c.deps.Store
	slow := newClaims(&betweenStore{store, func() {
		require.NoError(t, c.claims.claim(t.Context(), part.source))
		known, err := store.Load(t.Context(), []route.Partition{part.source})
		require.NoError(t, err)
		require.True(t, known[part.source].Clean, "a claim says nothing of what is in flight")
		require.NoError(t, c.unclean(t.Context(), known))
	}}, "b")
	require.NoError(t, slow.claim(t.Context(), part.source))
	known, err := store.Load(t.Context(), []route.Partition{part.source})
	require.NoError(t, err)
	require.False(t, known[part.source].Clean)
}

// Only the writer's word that an end was clean is taken, so the writer must be known before anything is sent.
func TestWriterIsStoredBeforeTheLaneRuns(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, part := one(t, c, func(at *offsets.Checkpoint) { at.Writer = "an earlier name of this worker" })
	require.NoError(t, c.startTopic(t.Context(), pair))
	known, err := c.deps.Store.Load(t.Context(), []route.Partition{part.source})
	require.NoError(t, err)
	require.Equal(t, "w1", known[part.source].Writer)
}
