package faults_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// limitProducer bounds the bytes a second that a client may write; 0 lifts the bound.
func limitProducer(t *testing.T, k *kafkatest.Cluster, client string, bytesPerSecond float64) {
	t.Helper()
	changed, err := kadm.NewClient(k.Client(t)).AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &client}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: bytesPerSecond, Remove: bytesPerSecond == 0}},
	}})
	require.NoError(t, err)
	require.NoError(t, changed[0].Err, changed[0].ErrMessage)
}

// TestC13SlowTargetKeepsWhatItHas: a target that takes a tenth of what comes does not keep positions from being stored, so that a kill costs nothing.
func TestC13SlowTargetKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const topic, to, client, records = "slowed", "slowed.copy", "slowed-mirror", 30_000
	k.CreateTopic(t, topic, 1, nil)
	k.CreateTopic(t, to, 1, nil)
	limitProducer(t, k, client, 1<<20)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: records, ValueBytes: 1000, Codec: "none", BatchBytes: 16 << 10})
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "500ms")...)
	properties := filepath.Join(m.dir, "target.properties")
	require.NoError(t, os.WriteFile(properties, []byte("client.id="+client+"\n"), 0o600))
	m.args = append(m.args, "--target-config", properties)
	m.start(t)
	m.api(t)
	const behind = 5 * time.Second
	type seen struct {
		at    time.Time
		acked int64
	}
	var before []seen
	last := place{}
	for began := time.Now(); time.Since(began) < 8*time.Second; pass(t, 100*time.Millisecond) {
		p := m.places(t, topic)
		if len(p) == 0 {
			continue
		}
		last = p[0]
		now := time.Now()
		before = append(before, seen{now, last.Acked})
		for ; now.Sub(before[0].at) > behind; before = before[1:] {
			require.GreaterOrEqual(t, last.Committed, before[0].acked, "acknowledged %v ago", now.Sub(before[0].at))
		}
	}
	require.Less(t, last.Acked, int64(records), "the target was not slow")
	require.Positive(t, last.Committed)
	m.kill(t)
	limitProducer(t, k, client, 0)
	m.start(t)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, to, records)
}

// TestC7RecordTooLargeForTheTarget: what is small when it is compressed passes, a record that is too large stops its own partition and is named.
func TestC7RecordTooLargeForTheTarget(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const topic, other = "bulky", "bulky-not"
	k.CreateTopic(t, topic, 1, map[string]string{"max.message.bytes": "5242880"})
	k.CreateTopic(t, topic+".copy", 1, map[string]string{"max.message.bytes": "1000000"})
	k.CreateTopic(t, other, 1, nil)
	cl := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchMaxBytes(5<<20), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	noise := make([]byte, 2_000_000)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	zeros := make([]byte, len(noise))
	for _, value := range append([][]byte{zeros, noise}, bytes.SplitAfter([]byte("0123456789"), nil)...) { // one batch each
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Value: value}).FirstErr())
	}
	load(t, k, other, 0, 1000)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic+","+other, "--rename", "{topic}.copy")...)
	m.start(t)
	m.caughtUp(t, other)
	e := m.awaitEvent(t, "partition_halted", topic, 30*time.Second)
	require.EqualValues(t, 1, *e.FirstOffset)
	require.Contains(t, e.Reason, "MESSAGE_TOO_LARGE")
	_, body := m.health(t)
	require.Contains(t, body, `"halted":["bulky-0"]`)
	pass(t, 12*time.Second) // halted partitions are tried again every ten
	_, metrics := get(t, m.api(t)+"/metrics")
	require.Regexp(t, `causeway_produce_errors_total\{error="MESSAGE_TOO_LARGE"[^}]*\} 1\n`, metrics, "the record was sent again for nothing")
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), other, other+".copy", 1000)
	require.EqualValues(t, 1, recordsOf(t, k, topic+".copy"))
	require.True(t, bytes.Equal(zeros, first(t, k, topic+".copy").Value))
}

// first is the first record of a topic.
func first(t *testing.T, k *kafkatest.Cluster, topic string) *kgo.Record {
	t.Helper()
	cl := k.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	fetched := cl.PollRecords(t.Context(), 1)
	require.NoError(t, fetched.Err())
	return fetched.Records()[0]
}
