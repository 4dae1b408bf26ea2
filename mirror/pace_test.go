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

// addLane adds a lane to the rig's mirror; it goes with the test.
func (r *rig) addLane(p route.Partition) *Lane {
	r.t.Helper()
	at := firstAt(0)
	at.Partition = p
	l := r.mirror.Add(Plan{Source: p, Target: p}, at, Wakers{Source: func() {}, Sink: func() {}})
	r.t.Cleanup(func() {
		r.mirror.Close(l)
		r.mirror.Remove(l)
	})
	return l
}

func wants(l *Lane) bool {
	_, _, room := l.Want()
	return room > 0
}

func TestLimitOfOnePartitionSlowsNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	other, foreign := r.addLane(route.Partition{Topic: "t", Partition: 1}), r.addLane(route.Partition{Topic: "u"})
	take := func() {
		at := int(r.lane.Status().Acked)
		r.feed(route.Offset(at+1), made{base: route.Offset(at), numbers: []int{at}})
		r.take(true, int32(at), at)
		r.ok(true, route.Offset(at))
	}

	r.mirror.SetPartitionLimits(route.Partition{Topic: "t"}, Limits{RecordsPerSecond: 1})
	for wants(r.lane) {
		take()
	}
	require.True(t, wants(other), "another one's limit")
	require.True(t, wants(foreign))
	r.mirror.SetPartitionLimits(route.Partition{Topic: "t"}, Limits{})
	require.True(t, wants(r.lane))

	r.mirror.SetTopicLimits("t", Limits{RecordsPerSecond: 1})
	for wants(r.lane) {
		take()
	}
	require.False(t, wants(other), "a topic's limit is for all of it together")
	late := r.addLane(route.Partition{Topic: "t", Partition: 2})
	require.False(t, wants(late), "also for those that come later")
	require.True(t, wants(foreign))
	woken := r.sources
	r.mirror.SetTopicLimits("t", Limits{})
	require.Greater(t, r.sources, woken, "who was turned away is told")
	require.True(t, wants(r.lane))
	require.True(t, wants(other))
	require.True(t, wants(late))
	require.False(t, r.mirror.limits.any.Load())
}
