package mirror

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// A partition whose topic is deleted was shown as mirroring again at each retry, until the source had said again that it is gone.
func TestDeletedTopicStaysHaltedWhileItIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	ends := route.Extent{Start: 0, LastStable: 2, End: 2}
	require.Equal(t, Mirroring, r.lane.Status().State)
	require.Zero(t, r.lane.Status().LagRecords)

	gone := &route.Fault{Class: route.SourceChanged, Code: codeNoTopic}
	_, generation, _ := r.lane.Want()
	for range 2 {
		r.lane.Fail(generation, gone)
		require.Equal(t, Halted, r.lane.Status().State)
		require.EqualValues(t, -1, r.lane.Status().LagRecords, "the ends are of a topic that is no more")
		r.lane.Retry()
		s := r.lane.Status()
		require.Equal(t, Halted, s.State)
		require.Equal(t, gone.Error(), s.Reason)
	}
	require.True(t, r.lane.Halted())
	r.lane.Extent(ends)
	require.Equal(t, Mirroring, r.lane.Status().State)
	require.Equal(t, 1, r.told(events.PartitionHalted))
	require.Equal(t, 1, r.told(events.PartitionRecovered))
}

// By policy a partition whose topic is deleted is no trouble: it stops, and goes on if the topic comes back.
func TestDeletedTopicStopsByPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{On: Policies{Deleted: Stop}})
	r.openAt()
	_, generation, _ := r.lane.Want()
	for range 2 {
		r.lane.Fail(generation, &route.Fault{Class: route.SourceChanged, Code: codeNoTopic})
		require.Equal(t, Stopped, r.lane.Status().State)
		r.lane.Retry()
		s := r.lane.Status()
		require.Equal(t, []any{Stopped, ReasonDeleted, "", int64(-1)}, []any{s.State, s.Reason, s.LastError, s.LagRecords})
	}
	require.False(t, r.lane.Halted())
	require.Equal(t, 1, r.told(events.TopicDeleted))
	require.Zero(t, r.told(events.PartitionHalted))

	r.lane.Extent(route.Extent{Start: 0, LastStable: 2, End: 2})
	require.Equal(t, Mirroring, r.lane.Status().State)
	require.Equal(t, 1, r.told(events.PartitionRecovered))
	r.lane.Fail(generation, &route.Fault{Class: route.SourceChanged, Code: codeNoTopic})
	require.Equal(t, 2, r.told(events.TopicDeleted))
	r.lane.Fail(generation, &route.Fault{Class: route.SourceChanged, Code: codeOtherTopic})
	require.Equal(t, Recreated, r.lane.Stale().Cause, "another topic has the name now")
	require.Equal(t, Halted, r.lane.Status().State)
}

// What was read before the source failed is acknowledged meanwhile; that is no recovery.
func TestAcknowledgementDoesNotEndAHaltOfTheSource(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.openAt()
	r.feed(4, made{base: 2, numbers: []int{2, 3}})
	r.take(true, 2, 2, 3)
	_, generation, _ := r.lane.Want()
	r.lane.Fail(generation, &route.Fault{Class: route.Corrupt, Code: "CORRUPT_BATCH"})
	r.ok(true, 2)
	require.Equal(t, Halted, r.lane.Status().State)
	require.Zero(t, r.told(events.PartitionRecovered))
}
