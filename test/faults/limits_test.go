package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// The target forgets producer ids within seconds, and the mirror is idle or dead for longer than that, with all its positions uncommitted.
func TestProducerIDsExpireWithinSeconds(t *testing.T) {
	t.Parallel()
	src := kafkatest.Shared(t, kafkatest.Kafka3)
	dst := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Heap: "256m", Config: map[string]string{
		"producer.id.expiration.ms": "2000", "producer.id.expiration.check.interval.ms": "500",
	}})
	const topic = "expiring"
	src.CreateTopic(t, topic, 3, nil)
	m := newMirrorer(t, "mirror", between(src.Bootstrap(), dst.Bootstrap(), topic, "--commit-interval", "1h")...)
	m.start(t)
	m.flowing(t, src, topic)
	written := int64(0)
	for round := range rounds(4, 30) {
		written += kafkatest.Load(t, src.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 500, First: round * 500, Rate: 1000}).Committed
		if round%2 == 0 {
			m.kill(t)
			pass(t, upTo(4*time.Second))
			m.start(t)
			if round%4 == 0 {
				m.caughtUp(t, topic) // what a killed owner may have left on its way is waited for, as records are old here within a second
			}
		} else {
			pass(t, upTo(4*time.Second))
		}
	}
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, src.Bootstrap(), dst.Bootstrap(), topic, "", written)
}

// The target takes no batch of more than 100 kB: larger ones are split, a larger record halts its partition alone until the limit is raised.
func TestRecordTooLargeUntilTheLimitIsRaised(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "large"
	k.CreateTopic(t, topic, 3, nil)
	k.CreateTopic(t, topic+".copy", 3, map[string]string{"max.message.bytes": "100000"})
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy")...)
	m.start(t)
	m.flowing(t, k, topic)
	cl := k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: 1, Value: make([]byte, 500_000)}).FirstErr())
	written := kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 3000, BatchBytes: 512 << 10, Codec: "none", ValueBytes: 500}).Committed
	require.Eventually(t, func() bool {
		_, parts := get(t, m.api(t)+"/api/v1/partitions")
		return strings.Contains(parts, "MESSAGE_TOO_LARGE") && strings.Count(parts, `"halted"`) == 1
	}, 30*time.Second, 100*time.Millisecond)
	limitBatches(t, k, topic+".copy", "2000000")
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", written)
}

// limitBatches sets the largest batch that a topic takes, in bytes.
func limitBatches(t *testing.T, k *kafkatest.Cluster, topic, limit string) {
	t.Helper()
	_, err := kadm.NewClient(k.Client(t)).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &limit}}, topic)
	require.NoError(t, err)
}
