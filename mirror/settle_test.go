package mirror

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// A lane that waits for its target's answer holds a little of each of many fetch answers, and with it all of them.
func TestLaneThatWaitsDoesNotKeepWhatOthersFetched(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.hint(fresh)
	const answer = 1 << 20 // of which the lane gets one batch of one record, the rest is of others
	for i := range 12 {
		m := made{base: route.Offset(i), numbers: []int{i}}
		s := r.pool.Get(answer, 0)
		n := copy(s.Bytes(), m.bytes())
		_, generation, _ := r.lane.Want()
		at := route.Offset(i + 1)
		r.lane.Append(generation, s, []batch.Batch{batch.Batch(s.Bytes()[:n:n])}, route.Position{Offset: at, LeaderEpoch: -1}, route.Extent{LastStable: at, End: at})
		s.Release()
		r.handle()
		if i == 0 {
			r.take(true, 0, 0) // and its answer does not come
		}
	}
	used := r.pool.Budget().Used()
	r.ok(true, 0)
	require.Less(t, used, int64(2*answer), "12 small batches keep the memory of 12 whole answers")
}
