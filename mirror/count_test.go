package mirror

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Four records lay beyond the checkpoint on the target when the process died; before it came back, a cleaner took two of them from the source.
// Counting four records in what is left would take two new ones for stored ones, and lose them.
func TestRecordsAfterCompactedOnesAreNotTakenForStored(t *testing.T) {
	t.Parallel()
	at := firstAt(100)
	at.Sequence, at.Opened, at.TargetOffset = 100, true, 100
	left := made{base: 100, numbers: []int{100, 103}, deltas: []int{0, 3}}
	fresh := made{base: 104, numbers: []int{104, 105}}
	for name, row := range map[string]struct {
		stamp   int64
		plan    Plan
		recount bool
	}{
		"the target's last batch is another one":        {stamp: 1003, plan: Plan{KeepAppendTime: true}, recount: true},
		"the target's last batch is the one counted to": {stamp: 2000, plan: Plan{KeepAppendTime: true}},
		"the target's last batch was merged of several": {stamp: 2001, plan: Plan{KeepAppendTime: true}},
		"the target stamps append times":                {stamp: 9000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, at, 1, row.plan)
			h := stands(103)
			h.Timestamp = row.stamp
			r.hint(h)
			r.feed(108, left, fresh, made{base: 106, numbers: []int{106, 107}})
			_, recount := r.lane.Stale()
			require.Equal(t, row.recount, recount)
			if row.recount {
				require.Zero(t, r.lane.Next(), "something is sent although nothing can be counted")
				r.lane.Retry()
				require.Zero(t, r.lane.Next(), "a retry can't count either")
			}
		})
	}
}

func TestCountIsBelievedWhereEachOffsetIsARecord(t *testing.T) {
	t.Parallel()
	at := firstAt(100)
	at.Sequence, at.Opened, at.TargetOffset = 50, true, 100
	r := newRig(t, at, 1, Plan{KeepAppendTime: true})
	r.hint(offsets.Hint{Known: true, Last: 53, First: -1, Timestamp: 1, End: 1000})
	r.feed(106, made{base: 100, numbers: []int{100, 101}}, made{base: 102, numbers: []int{102, 103}}, made{base: 104, numbers: []int{104, 105}})
	r.take(true, 54, 104, 105)
	r.ok(true, 200)
	require.Equal(t, route.Offset(106), r.commit().SourceOffset)
}
