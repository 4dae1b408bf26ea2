package connector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// The target's refusal to make one topic, here for a name that collides with another's, degraded the whole route for as long as it lasted, and the
// partitions never halted.
func TestTopicThatTheTargetRefusesToMakeHaltsItselfAlone(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	k.CreateTopic(t, "clash.of_names", 1, nil)
	k.CreateTopic(t, "clash_of.names-copy", 1, nil)
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	c, happened, _ := startWith(t, k.Bootstrap(), k.Bootstrap(), store, nil)
	part := route.Partition{Topic: "clash.of_names"}
	c.Add(part)
	require.Eventually(t, func() bool { return stateOf(c, part).State == "halted" }, 20*time.Second, 5*time.Millisecond)
	require.Contains(t, stateOf(c, part).Reason, "collides with existing topic")
	require.Contains(t, told(happened, part), events.PartitionHalted)
}
