package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Helix's maintenance mode was read and nobody cared: partitions moved all the same.
func TestNothingMovesInHelixMaintenanceMode(t *testing.T) {
	r := newStand(t)
	term := r.start(t)
	r.join(t, "w_1")
	require.Eventually(t, func() bool { return term.State().Workers["w_1"].Live }, limit, 10*time.Millisecond)
	require.NoError(t, term.Add(t.Context(), "orders", 4))
	online(t, term, 4)
	node := r.cluster.Root() + "/CONTROLLER/MAINTENANCE"
	require.NoError(t, r.session.Create(t.Context(), node, []byte(`{"id":"maintenance"}`)))
	balancing := term.Balancing
	require.Eventually(t, func() bool { return !balancing() }, limit, 10*time.Millisecond)
	r.join(t, "w_2")
	require.Eventually(t, func() bool { return term.State().Workers["w_2"].Live }, limit, 10*time.Millisecond)
	moved, err := term.Rebalance(t.Context())
	require.NoError(t, err)
	require.Zero(t, moved)
	require.NoError(t, r.session.Delete(t.Context(), node, -1))
	require.Eventually(t, balancing, limit, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := term.Rebalance(t.Context()) // it may have happened by itself
		return err == nil && owned(term, "w_2") == 2
	}, limit, 100*time.Millisecond)
}

// owned counts the partitions of topic orders that a worker has.
func owned(term *Term, worker string) (n int) {
	for p := range int32(4) {
		if term.State().Topics["orders"].Owner(p) == worker {
			n++
		}
	}
	return n
}
