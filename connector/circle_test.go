package connector_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

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

// way is a route that drops what comes back, between two clusters of one topic name.
func way(t *testing.T, from, to *kfake.Cluster) *connector.Connector {
	t.Helper()
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	c, _, _ := startAs(t, from.ListenAddrs(), to.ListenAddrs(), store, func(cfg *connector.Config, hc *handler.Config) {
		cfg.DropLoops, cfg.LoopInterval, hc.Rename = true, time.Hour, "{topic}" // nobody is told in time of new ids
	})
	return c
}

// Two routes copy one topic there and back: each record comes to the other cluster once, and what is left out is no lag.
func TestTwoWayRoutesOfOneNameDropWhatComesBack(t *testing.T) {
	t.Parallel()
	a, b := circleOf(t, "a"), circleOf(t, "b")
	for _, k := range []*kfake.Cluster{a, b} {
		writeTo(t, k, 3)
	}
	there, back := way(t, a, b), way(t, b, a)
	sum := int64(6)
	holds := func() {
		t.Helper()
		for _, k := range []*kfake.Cluster{a, b} {
			require.Eventually(t, func() bool { return k.PartitionInfo("both", 0).HighWatermark >= sum }, 20*time.Second, 10*time.Millisecond)
		}
		awaitCopied(t, there, parts("both", 1)...)
		awaitCopied(t, back, parts("both", 1)...)
		for _, k := range []*kfake.Cluster{a, b} {
			require.Equal(t, sum, k.PartitionInfo("both", 0).HighWatermark)
		}
	}
	there.Add(parts("both", 1)...)
	back.Add(parts("both", 1)...)
	holds()
	writeTo(t, a, 2)
	writeTo(t, b, 2)
	sum += 4
	holds()
	require.Empty(t, there.Circling())
	require.Empty(t, back.Circling())
	require.Eventually(t, func() bool { // the last that came back may not be read yet
		return int64(there.Status().Partitions[0].Acked) == sum
	}, 20*time.Second, 10*time.Millisecond, "what is left out counts as read")
}

func circleOf(t *testing.T, id string) *kfake.Cluster {
	t.Helper()
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ClusterID(id), kfake.SeedTopics(1, "both"))
	require.NoError(t, err)
	t.Cleanup(k.Close)
	return k
}

// writeTo writes so many records to a cluster, each by another producer.
func writeTo(t *testing.T, k *kfake.Cluster, records int) {
	t.Helper()
	for range records {
		cl, err := kgo.NewClient(kgo.SeedBrokers(k.ListenAddrs()...), kgo.DefaultProduceTopic("both"))
		require.NoError(t, err)
		produce(t, cl, kgo.StringRecord("x"))
		cl.Close()
	}
}

// What is sent with an id that no marker names would come back. So nothing is, and the reason is told.
func TestNothingIsSentUnderAnIDThatNoMarkerNames(t *testing.T) {
	t.Parallel()
	a, b := circleOf(t, "a"), circleOf(t, "b")
	writeTo(t, a, 3)
	var denied atomic.Bool
	denied.Store(true)
	b.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if !denied.Load() {
			return nil, nil, false
		}
		r := req.(*kmsg.OffsetCommitRequest)
		resp := r.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, rt := range r.Topics {
			topic := kmsg.NewOffsetCommitResponseTopic()
			topic.Topic, topic.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				part := kmsg.NewOffsetCommitResponseTopicPartition()
				part.Partition, part.ErrorCode = rp.Partition, kerr.GroupAuthorizationFailed.Code
				topic.Partitions = append(topic.Partitions, part)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	there := way(t, a, b)
	there.Add(parts("both", 1)...)
	require.Eventually(t, func() bool { return strings.Contains(there.Status().Partitions[0].Reason, "leave a marker") }, 20*time.Second, 10*time.Millisecond)
	require.Zero(t, b.PartitionInfo("both", 0).HighWatermark)
	denied.Store(false)
	awaitCopied(t, there, parts("both", 1)...)
	require.EqualValues(t, 3, b.PartitionInfo("both", 0).HighWatermark)
}

func TestDroppingIsForOneProcess(t *testing.T) {
	t.Parallel()
	cfg := connector.DefaultConfig()
	cfg.DropLoops, cfg.Share = true, true
	require.ErrorContains(t, cfg.Validate(), "loops: drop: needs a process that mirrors alone")
}
