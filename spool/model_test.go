package spool

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// expire has the source delete what is acknowledged or on disk.
func (r *rig) expire() {
	r.lane.mu.Lock()
	acked := r.lane.acked.Offset
	r.lane.mu.Unlock()
	r.start = max(r.start, acked, r.onDisk())
}

// restart ends the process and starts it again, perhaps with a while before its lane runs.
func (r *rig) restart(alone bool) {
	r.t.Helper()
	r.stop()
	r.open("log")
	if alone {
		require.NoError(r.t, r.line.Begin(r.lane.Flow().Acked))
		r.until("not on disk", func() bool { return r.onDisk() == r.end })
	}
	r.join()
}

// settled waits until all that the source has is on disk or with the lane.
func (r *rig) settled() {
	r.t.Helper()
	r.until("does not come to the end", func() bool {
		_, _, room := r.lane.Want()
		return room == 0 && r.onDisk() == r.end || room > 0 && r.lane.where() == r.end
	})
}

// TestAnyOrderOfOutages: whatever comes after whatever, the lane is given everything, in order, though the source keeps no more than it must.
func TestAnyOrderOfOutages(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			r := newRig(t, nil)
			r.join()
			r.lane.back()
			for range 80 {
				switch rng.IntN(9) {
				case 0, 1:
					r.grow(1 + rng.IntN(15))
				case 2:
					r.lane.away()
				case 3:
					r.lane.back()
				case 4:
					r.lane.ack()
				case 5:
					r.expire()
				case 6:
					r.settled()
				case 7:
					for range rng.IntN(5) {
						r.fetch()
					}
				case 8:
					if rng.IntN(3) == 0 {
						r.restart(rng.IntN(2) == 0)
					}
				}
			}
			r.drained()
			r.whole(0)
			require.Empty(t, r.lane.faults)
			require.Empty(t, r.told(events.SpillSetAside))
			require.Empty(t, r.told(events.SpillCorrupt))
			r.until("kept what is stored as copied", func() bool { return r.onDisk() == route.NoOffset })
		})
	}
}
