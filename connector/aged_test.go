package connector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// A broker counts the age of a producer id by the timestamp of its last batch, not by when that was written. Of records that were old when they were
// copied it forgets ours at its next look, however lately it acknowledged them, and the partition stood still as if the target had lost something.
func TestRecordsOlderThanProducerIDsAreGoneOnFromAfterARestart(t *testing.T) {
	t.Parallel()
	k := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Heap: "256m", Config: map[string]string{
		"producer.id.expiration.check.interval.ms": "200", // the expiration itself is the default, a day
	}})
	const topic = "aged"
	k.CreateTopic(t, topic, 1, nil)
	cl := k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	write := func(n int) {
		for range n {
			produce(t, cl, &kgo.Record{Topic: topic, Value: []byte("x"), Timestamp: time.Now().Add(-72 * time.Hour)})
		}
	}
	state, p := t.TempDir(), route.Partition{Topic: topic}
	for range 2 {
		write(10)
		c, stop := start(t, k.Bootstrap(), k.Bootstrap(), state, nil)
		c.Add(p)
		awaitCopied(t, c, p)
		stop()
		set := kadm.TopicsSet{}
		set.Add(topic+"-copy", 0)
		require.Eventually(t, func() bool {
			known, err := kadm.NewClient(cl).DescribeProducers(t.Context(), set)
			return err == nil && len(known[topic+"-copy"].Partitions[0].ActiveProducers) == 0
		}, 30*time.Second, 50*time.Millisecond, "the broker still knows the id")
	}
	equal(t, k, topic)
}
