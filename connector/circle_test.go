package connector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/offsets/bolt"
)

// Three routes make a ring that none of them sees at its start, since what is known of a topic's way goes round with the markers. The last one is
// drained and stays away; the others go on, and so does its other topic.
func TestRingThatIsClosedWhileItRunsIsCut(t *testing.T) {
	t.Parallel()
	clusters := map[string]*kfake.Cluster{}
	for _, id := range []string{"a", "b", "c"} {
		kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ClusterID(id), kfake.SeedTopics(1, "ring", "alone"))
		require.NoError(t, err)
		t.Cleanup(kc.Close)
		clusters[id] = kc
	}
	end := func(id, topic string) int64 { return clusters[id].PartitionInfo(topic, 0).HighWatermark }
	begin := func(from, to string, look time.Duration, topics ...string) (*connector.Connector, *events.Log) {
		store, err := bolt.Open(t.TempDir())
		require.NoError(t, err)
		c, happened, _ := startAs(t, clusters[from].ListenAddrs(), clusters[to].ListenAddrs(), store, func(cfg *connector.Config, hc *handler.Config) {
			cfg.LoopInterval, hc.Rename = look, "{topic}"
		})
		for _, topic := range topics {
			c.Add(parts(topic, 1)...)
			awaitCopied(t, c, parts(topic, 1)...)
		}
		return c, happened
	}
	write := func(id, topic string) {
		cl, err := kgo.NewClient(kgo.SeedBrokers(clusters[id].ListenAddrs()...), kgo.DefaultProduceTopic(topic))
		require.NoError(t, err)
		defer cl.Close()
		produce(t, cl, kgo.StringRecord("x"))
	}
	second, _ := begin("b", "c", 2*time.Second, "ring")
	first, _ := begin("a", "b", 50*time.Millisecond, "ring")
	last, told := begin("c", "a", 50*time.Millisecond, "alone")
	last.Add(parts("ring", 1)...)

	require.Eventually(t, func() bool { return len(last.Circling()) == 1 }, 20*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return last.Status().Partitions[1].State == "halted" }, 20*time.Second, 10*time.Millisecond)
	require.Contains(t, last.Status().Partitions[1].Reason, "a loop")
	var refused []events.Event
	for _, e := range told.Since(0) {
		if e.Type == events.LoopRefused {
			refused = append(refused, e)
		}
	}
	require.Len(t, refused, 1)
	require.Equal(t, "ring", refused[0].Topic)

	before := end("a", "ring")
	write("a", "ring")
	write("c", "alone")
	require.Eventually(t, func() bool { return end("c", "ring") == 1 && end("a", "alone") == 1 }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, before+1, end("a", "ring"))
	require.Empty(t, first.Circling())
	require.Empty(t, second.Circling())
}
