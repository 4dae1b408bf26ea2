package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

func TestLimitIsKeptOverTime(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]Limits{
		"records": {RecordsPerSecond: 10},
		"bytes":   {BytesPerSecond: 10 * float64(len(made{numbers: []int{0}}.bytes()))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, firstAt(0), 1, Plan{})
			r.openAt() // 2 records
			r.mirror.SetLimits(limits)
			room := func() int32 { _, _, room := r.lane.Want(); return room }
			taken := 0
			for range 300 { // 30 s
				r.after(100 * time.Millisecond)
				if room() == 0 {
					continue
				}
				for range 7 {
					at := 2 + taken
					r.feed(route.Offset(at+1), made{base: route.Offset(at), numbers: []int{at}})
					r.take(true, int32(at), at)
					r.ok(true, route.Offset(at))
					taken++
				}
			}
			require.InDelta(t, 300, taken, 10)

			// paid off, the lane's source is woken
			for room() > 0 {
				at := 2 + taken
				r.feed(route.Offset(at+1), made{base: route.Offset(at), numbers: []int{at}})
				r.take(true, int32(at), at)
				r.ok(true, route.Offset(at))
				taken++
			}
			woken := r.sources
			r.lane.paced()
			require.Equal(t, woken, r.sources)
			r.after(time.Second)
			r.lane.paced()
			require.Greater(t, r.sources, woken)

			r.mirror.SetLimits(Limits{})
			require.Positive(t, room())
		})
	}
}
