package connector

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Sixteen of seventeen partitions were refused by their target without end. The list of partitions said so, and nothing else did.
func TestPartitionsThatTryInVainDegradeTheRoute(t *testing.T) {
	t.Parallel()
	c, _ := withLanes(t, 3)
	fail := func(topic string) {
		lane := c.parts[route.Partition{Topic: topic}].lane
		for range 3 {
			require.Eventually(t, func() bool {
				q, _ := lane.Inquiry()
				return q.Question != offsets.NoQuestion
			}, 10*time.Second, time.Millisecond)
			lane.Hint(offsets.Hint{}, &route.Fault{Class: route.Moved, Code: "NOT_LEADER", Err: errors.New("never")}) //nolint:err113 // any reason
		}
	}
	now := time.Now()
	fail("t2")
	fail("t1")
	require.Empty(t, c.troubledLocked(now), "it may yet go well")
	require.Empty(t, c.troubledLocked(now.Add(troubledAfter-time.Second)))
	require.Contains(t, c.troubledLocked(now.Add(troubledAfter)), "2 partitions make no progress, such as t1-0: NOT_LEADER")
	lane := c.parts[route.Partition{Topic: "t1"}].lane
	require.Eventually(t, func() bool {
		q, _ := lane.Inquiry()
		return q.Question != offsets.NoQuestion
	}, 10*time.Second, time.Millisecond)
	lane.Hint(offsets.Hint{Known: true, Last: 4, First: -1, Timestamp: -1, End: 5}, nil)
	require.Contains(t, c.troubledLocked(now.Add(troubledAfter)), "1 partitions make no progress, such as t2-0")
}
