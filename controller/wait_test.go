package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Each look read the positions of all partitions, twice a second and for each who waits: with ten thousand partitions of which one was behind, that
// was most of what ZooKeeper did.
func TestAWaitDoesNotReadAgainWhatHasReachedItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		term := newTerm(r.Controller, r.cluster)
		require.NoError(t, term.Add(t.Context(), "orders", 2))
		there, behind := part("orders", 0), part("orders", 1)
		r.source.ends[there], r.positions.at[there] = 100, 100
		r.source.ends[behind], r.positions.at[behind] = 100, 40
		ctx, cancel := context.WithTimeout(t.Context(), 9*waitEvery+waitEvery/2)
		defer cancel()
		present, ok, err := term.CaughtUp(ctx, "orders", 0)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, int64(60), present)
		require.Equal(t, 10, r.positions.readsOf(behind))
		require.Equal(t, 1, r.positions.readsOf(there))

		start := time.Now()
		time.AfterFunc(time.Minute, func() { r.positions.set(behind, 90) })
		present, ok, err = term.CaughtUp(t.Context(), "", 10)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, int64(10), present)
		require.InDelta(t, time.Minute, time.Since(start), float64(waitEvery))
	})
}
