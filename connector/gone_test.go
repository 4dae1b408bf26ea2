package connector_test

import (
	"slices"
	"testing"
	"time"

	zookeeper "github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets/zk"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// Where an operator deletes the position of a partition that runs, nothing of it can be stored any more. It used to run on until the next start,
// which then could not say where to go on.
func TestPartitionWhosePositionIsDeletedHaltsAtOnce(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	server := kafkatest.SharedZooKeeper(t).Addr()
	operator, _, err := zookeeper.Connect([]string{server}, time.Minute, zookeeper.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(operator.Close)
	for name, tc := range map[string]struct {
		topic   string
		deleted []string // below the group's node
	}{
		"the partition's nodes": {"deleted", []string{"offsets/deleted/0", "causeway/deleted/0"}},
		"the offset":            {"no-offset", []string{"offsets/no-offset/0"}},
		"all that tells of it":  {"forgotten", []string{"offsets/forgotten/0", "causeway/forgotten/0", "causeway/forgotten"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k.CreateTopic(t, tc.topic, 1, nil)
			load := func(first int) {
				kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: tc.topic, First: first, Records: 100})
			}
			cfg := zk.DefaultConfig()
			cfg.Address, cfg.Group = server+"/gone-"+tc.topic, "g"
			store, err := zk.Open(t.Context(), cfg, hclog.NewNullLogger())
			require.NoError(t, err)
			load(0)
			c, happened, _ := startWith(t, k.Bootstrap(), k.Bootstrap(), store, nil)
			part := route.Partition{Topic: tc.topic}
			c.Add(part)
			require.Eventually(t, func() bool { return stateOf(c, part).Committed == 100 }, 30*time.Second, 5*time.Millisecond)

			group := "/gone-" + tc.topic + "/consumers/g/"
			for _, node := range tc.deleted {
				require.NoError(t, operator.Delete(group+node, -1))
			}
			load(100)
			require.Eventually(t, func() bool { return stateOf(c, part).State == "halted" }, 20*time.Second, 5*time.Millisecond)
			require.Contains(t, stateOf(c, part).Reason, "a checkpoint that was begun is missing")
			require.Eventually(t, func() bool { return slices.Contains(told(happened, part), events.CheckpointMissing) }, 10*time.Second, 5*time.Millisecond)

			if tc.topic != "no-offset" { // who was the producer is gone with the rest
				return
			}
			_, err = operator.Create(group+"offsets/"+tc.topic+"/0", []byte("200"), 0, zookeeper.WorldACL(zookeeper.PermAll))
			require.NoError(t, err)
			load(200)
			caughtUp(t, c, tc.topic)
			d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), tc.topic, tc.topic+"-copy")
			require.True(t, d.Equal(), d.String())
		})
	}
}
