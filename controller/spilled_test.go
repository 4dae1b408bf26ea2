package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// What a worker had on disk of a partition, and the source no more, stayed behind when the partition moved.
func TestPartitionsWithRecordsOnDiskStayUntilTheseAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1", "w2")
		pulse := &fakePulse{}
		r.Controller.deps.Pulse = pulse
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 8))
		mine := []route.Partition{}
		for n := range int32(8) {
			if p := part("orders", n); r.cluster.State().Topics["orders"].Owner(n) == "w1" {
				mine = append(mine, p)
			}
		}
		require.Len(t, mine, 4)
		pulse.spill("w1", mine[:3]...)
		require.NoError(t, term.Drain(t.Context(), "w1", true))
		pass(5 * time.Minute)
		require.Equal(t, map[string]int{"w1": 3, "w2": 5}, r.cluster.owners(), "a worker that drains sends them first")
		require.ErrorContains(t, term.Move(t.Context(), mine[0], "w2"), "has records of orders-")
		pulse.spill("w1", mine[0])
		pass(5 * time.Minute)
		require.Equal(t, map[string]int{"w1": 1, "w2": 7}, r.cluster.owners())
		r.cluster.live("w1", false)
		pass(5 * time.Minute)
		require.Equal(t, map[string]int{"w2": 8}, r.cluster.owners(), "of a worker that is gone they come too late")
	})
}
