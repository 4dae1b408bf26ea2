package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Somebody else writes to the target partition: that is told once, and by policy the partition stands still until somebody wants it to go on. What was
// acknowledged stays so.
func TestForeignWriterByPolicy(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		plan   Plan
		told   int
		halted bool
	}{
		"continue":        {Plan{On: Policies{ForeignWriter: Continue}}, 1, false},
		"halt":            {Plan{On: Policies{ForeignWriter: Halt}}, 1, true},
		"a shared target": {Plan{On: Policies{ForeignWriter: Halt}, Shared: true}, 0, false},
		"a two-way one":   {Plan{On: Policies{ForeignWriter: Continue}, Sieve: &sieve{}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, firstAt(0), 1, row.plan)
			r.openAt()
			r.feed(4, made{base: 2, numbers: []int{2}}, made{base: 3, numbers: []int{3}})
			r.take(true, 2, 2)
			r.take(true, 3, 3)
			r.ok(true, 2)
			require.Zero(t, r.told(events.ForeignWriter))
			r.ok(true, 7)
			require.Equal(t, row.told, r.told(events.ForeignWriter))
			require.Equal(t, route.Offset(4), r.commit().SourceOffset)
			require.Equal(t, row.halted, r.lane.Status().State == Halted)
			if row.halted {
				r.standsStill("somebody else writes to u-0")
				r.lane.retryByTime()
				require.Zero(t, r.lane.Next(), "went on by itself")
				r.lane.Retry()
				r.hint(stands(3))
			}
			r.feed(5, made{base: 4, numbers: []int{4}})
			r.take(true, 4, 4)
			r.ok(true, 8)
			require.Equal(t, row.told, r.told(events.ForeignWriter))
			require.NotEqual(t, Halted, r.lane.Status().State)
		})
	}
}

// By policy a partition goes on from its checkpoint although the target has lost what lies before it; another owner's newer epoch is no loss.
func TestLostTargetByPolicy(t *testing.T) {
	t.Parallel()
	for policy, cause := range map[Policy]Cause{Halt: 0, Continue: Lost, Resend: Resent} {
		at := firstAt(10)
		at.Sequence, at.Opened, at.AckedAt = 10, true, time.Unix(1_700_000_000, 0)
		r := newRig(t, at, 1, Plan{On: Policies{TargetLost: policy}})
		for r.lane.Status().State != Halted {
			r.hint(stands(4))
		}
		require.Equal(t, 1, r.told(events.TargetChanged))
		r.stale(cause)

		other := newRig(t, at, 1, Plan{On: Policies{TargetLost: policy}})
		for other.lane.Status().State != Halted {
			other.hint(offsets.Hint{Known: true, Epoch: 3, Last: 4, First: -1, Timestamp: -1})
		}
		other.stale(0)
	}
}
