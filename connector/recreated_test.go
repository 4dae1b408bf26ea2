package connector_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// told lists what happened to a partition, in order.
func told(log *events.Log, p route.Partition) (types []events.Type) {
	all := log.Since(0)
	for _, e := range all {
		if e.Topic == p.Topic && e.Partition != nil && *e.Partition == p.Partition {
			types = append(types, e.Type)
		}
	}
	return types
}

// A topic that is deleted and made again, with as many records as the old one had, was "caught up": the acked position of the old one is the
// end of the new one.
func TestRecreatedTopicIsBehindUntilItIsCopied(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "again"
	write := func(value string) {
		cl := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for p := range int32(3) {
			for range 5 {
				produce(t, cl, &kgo.Record{Partition: p, Value: []byte(value)})
			}
		}
	}
	k.CreateTopic(t, topic, 3, nil)
	write("old")
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	c, log, _ := startWith(t, k.Bootstrap(), k.Bootstrap(), store, nil)
	c.Add(parts(topic, 3)...)
	caughtUp(t, c, topic)

	k.Remake(t, topic, 3)
	write("new")
	begun := time.Now()
	for _, p := range parts(topic, 3) {
		lag := stateOf(c, p).LagRecords
		if !slices.Contains(told(log, p), events.TopicRecreated) { // on a slow machine it is on its way already
			require.EqualValues(t, -1, lag)
		}
	}
	caughtUp(t, c, topic)
	require.Less(t, time.Since(begun), 15*time.Second)
	fresh := 0
	for _, r := range read(t, k.Bootstrap(), topic+"-copy", 30) {
		if string(r.Value) == "new" {
			fresh++
		}
	}
	require.Equal(t, 15, fresh)
	for _, p := range parts(topic, 3) {
		require.Equal(t, []events.Type{events.PartitionHalted, events.TopicRecreated, events.PartitionRecovered}, told(log, p))
		require.Equal(t, "mirroring", stateOf(c, p).State)
	}
}
