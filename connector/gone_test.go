package connector_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	zookeeper "github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/zk"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// operatorOf is a client of ZooKeeper, connected.
func operatorOf(t *testing.T, server string) *zookeeper.Conn {
	t.Helper()
	conn, states, err := zookeeper.Connect([]string{server}, time.Minute, zookeeper.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	for e := range states { // it tries for as long as the test may run
		if e.State == zookeeper.StateHasSession {
			break
		}
	}
	return conn
}

// Where an operator deletes the position of a partition that runs, nothing of it can be stored any more. It used to run on until the next start,
// which then could not say where to go on. When an operator writes the offset again, the partition goes on from there; where the checkpoint was
// gone as well it used to be stuck, since the target knew more of the route's producer id than the new checkpoint.
func TestPartitionWhosePositionIsDeletedHaltsAtOnce(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	server := kafkatest.SharedZooKeeper(t).Addr()
	operator := operatorOf(t, server)
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
			_, err := operator.Create("/gone-"+tc.topic, nil, 0, zookeeper.WorldACL(zookeeper.PermAll))
			require.NoError(t, err)
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

			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err = c.Reset(ctx, part, connector.Reset{To: place(t, "earliest")}) // it used to wait for ever
			require.ErrorIs(t, err, offsets.ErrMissing)
			ends, err := kadm.NewClient(k.Client(t)).ListEndOffsets(t.Context(), tc.topic+"-copy") // an operator looks how far the copy is
			require.NoError(t, err)
			end, ok := ends.Lookup(tc.topic+"-copy", 0)
			require.True(t, ok)
			_, err = operator.Create(group+"offsets/"+tc.topic+"/0", strconv.AppendInt(nil, end.Offset, 10), 0, zookeeper.WorldACL(zookeeper.PermAll))
			require.NoError(t, err)
			load(200)
			caughtUp(t, c, tc.topic)
			d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), tc.topic, tc.topic+"-copy")
			require.True(t, d.Equal(), d.String())
		})
	}
}

// A topic that is taken out of the mirror, with all that the store knows of it, and comes back with other records: it used to be stuck, since the
// target knew sequences of the producer id and epoch that it began with. A batch of the same length might have passed for the old one.
func TestForgottenTopicThatComesBackIsCopied(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	server := kafkatest.SharedZooKeeper(t).Addr()
	const topic, records = "back-again", 100
	admin := kadm.NewClient(k.Client(t))
	operator := operatorOf(t, server)
	_, err := operator.Create("/"+topic, nil, 0, zookeeper.WorldACL(zookeeper.PermAll))
	require.NoError(t, err)
	cfg := zk.DefaultConfig()
	cfg.Address, cfg.Group = server+"/"+topic, "g"
	copied := func(first int) {
		require.Eventually(t, func() bool { // not while the brokers are still deleting it
			made, err := admin.CreateTopic(t.Context(), 1, 1, nil, topic)
			return err == nil && made.Err == nil
		}, 20*time.Second, 50*time.Millisecond)
		kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, First: first, Records: records})
		store, err := zk.Open(t.Context(), cfg, hclog.NewNullLogger())
		require.NoError(t, err)
		c, stop := startOn(t, k.Bootstrap(), k.Bootstrap(), store, nil)
		c.Add(route.Partition{Topic: topic})
		caughtUp(t, c, topic)
		stop()
	}
	copied(0)
	_, err = admin.DeleteTopics(t.Context(), topic)
	require.NoError(t, err)
	for _, node := range []string{"offsets/" + topic + "/0", "causeway/" + topic + "/0", "causeway/" + topic} {
		require.NoError(t, operator.Delete("/"+topic+"/consumers/g/"+node, -1))
	}
	copied(records)
	values := map[string]bool{}
	for _, r := range read(t, k.Bootstrap(), topic+"-copy", 2*records) {
		values[string(r.Value)] = true
	}
	require.Len(t, values, 2*records, "both lives of the topic")
}
