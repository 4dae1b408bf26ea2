package connector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func modulo(cfg *connector.Config, h *handler.Config) {
	cfg.CreateTopics, h.PartitionMismatch = false, handler.Modulo
}

// A source that grew beyond a target which may not be grown lost records: two of its partitions met in one of the target's, the first of which had
// been alone at its start, and a broker stores one of two batches of a partition in a request.
func TestSourceThatGrowsBeyondItsTargetLosesNothing(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic, each = "outgrown", 20_000
	k.CreateTopic(t, topic, 1, nil)
	k.CreateTopic(t, topic+"-copy", 1, nil)
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	c, _, stop := startAs(t, k.Bootstrap(), k.Bootstrap(), store, modulo)
	first, added := route.Partition{Topic: topic}, route.Partition{Topic: topic, Partition: 1}
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100})
	c.Add(first)
	awaitCopied(t, c, first)

	admin := kadm.NewClient(k.Client(t))
	_, err = admin.CreatePartitions(t.Context(), 1, topic)
	require.NoError(t, err)
	cl := k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4096), kgo.ProducerLinger(0))
	value := make([]byte, 500)
	require.Eventually(t, func() bool { // until the brokers know the new one
		return cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: 1, Value: value}).FirstErr() == nil
	}, 20*time.Second, 50*time.Millisecond)
	c.Add(added)
	for i := range 2 * each {
		cl.Produce(t.Context(), &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: value}, nil)
	}
	require.NoError(t, cl.Flush(t.Context()))
	awaitCopied(t, c, first, added)
	stop()
	ends, err := admin.ListEndOffsets(t.Context(), topic, topic+"-copy")
	require.NoError(t, err)
	a, _ := ends.Lookup(topic, 0)
	b, _ := ends.Lookup(topic, 1)
	copied, _ := ends.Lookup(topic+"-copy", 0)
	require.EqualValues(t, 100+2*each+1, a.Offset+b.Offset)
	require.Equal(t, a.Offset+b.Offset, copied.Offset)
}

// A target that was grown after its source stopped the partitions which went to others of it before: their checkpoints' target offsets and sequences
// were taken for the new partition's, which seemed to have lost all that.
func TestPartitionGoesOnInAnotherPartitionOfAGrownTarget(t *testing.T) {
	t.Parallel()
	kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"), kfake.SeedTopics(1, "orders-copy"))
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(kc.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	both := parts("orders", 2)
	state := t.TempDir()
	run := func() (c *connector.Connector, happened *events.Log, stop func()) {
		store, err := bolt.Open(state)
		require.NoError(t, err)
		return startAs(t, kc.ListenAddrs(), kc.ListenAddrs(), store, modulo)
	}
	write := func(n int) {
		for range n {
			for p := range int32(2) {
				produce(t, cl, &kgo.Record{Topic: "orders", Partition: p, Value: []byte("a")})
			}
		}
	}
	write(10)
	c, _, stop := run()
	c.Add(both...)
	awaitCopied(t, c, both...)
	stop()
	admin := kadm.NewClient(cl)
	grown, err := admin.CreatePartitions(t.Context(), 1, "orders-copy")
	require.NoError(t, err)
	require.NoError(t, grown.Error())
	write(5)
	for i := range 2 { // it moves once
		c, happened, stop := run()
		c.Add(both...)
		awaitCopied(t, c, both...)
		if i == 0 {
			require.Equal(t, []events.Type{events.TargetChanged}, told(happened, both[1]))
		}
		require.Empty(t, told(happened, both[0]))
		stop()
		ends, err := admin.ListEndOffsets(t.Context(), "orders-copy")
		require.NoError(t, err)
		old, _ := ends.Lookup("orders-copy", 0)
		now, _ := ends.Lookup("orders-copy", 1)
		require.Equal(t, [2]int64{25, 5}, [2]int64{old.Offset, now.Offset})
	}
}
