package connector_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// caughtUp waits until a topic's acked positions have reached its source's present end.
func caughtUp(t *testing.T, c *connector.Connector, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		present, ok, err := c.WaitCaughtUp(ctx, topic, 0)
		if ok {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%s is %d records behind after a minute: %v; %+v", topic, present, err, c.Status())
		}
		select { // the topic may be unknown to the brokers for a moment
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// parts are all partitions of a topic.
func parts(topic string, n int32) (ps []route.Partition) {
	for p := range n {
		ps = append(ps, route.Partition{Topic: topic, Partition: p})
	}
	return ps
}

// read returns the n records of a one-partition topic, as a read_committed consumer sees them.
func read(t *testing.T, bootstrap []string, topic string, n int) (rs []*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(rs) < n {
		fs := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%s has %d records, not %d", topic, len(rs), n)
		rs = append(rs, fs.Records()...)
	}
	require.Len(t, rs, n)
	return rs
}

func equal(t *testing.T, k *kafkatest.Cluster, topic string) {
	t.Helper()
	d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), topic, topic+"-copy")
	require.True(t, d.Equal(), d.String())
}

func produce(t *testing.T, cl *kgo.Client, rs ...*kgo.Record) {
	t.Helper()
	require.NoError(t, cl.ProduceSync(t.Context(), rs...).FirstErr())
}

func TestC1AbortedAndOpenTransactionsStayAway(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	k.CreateTopic(t, "txn", 1, nil)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: "txn", Records: 200, TxnRecords: 10, AbortEvery: 2})
	cl := k.Client(t, kgo.TransactionalID("open"), kgo.DefaultProduceTopic("txn"))
	require.NoError(t, cl.BeginTransaction())
	for i := range 10 {
		produce(t, cl, &kgo.Record{Value: fmt.Appendf(nil, "open %d", i)})
	}
	c, _ := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
	c.Add(parts("txn", 1)...)
	caughtUp(t, c, "txn")
	require.Len(t, read(t, k.Bootstrap(), "txn-copy", 100), 100)
	equal(t, k, "txn")

	require.NoError(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	caughtUp(t, c, "txn")
	require.Len(t, read(t, k.Bootstrap(), "txn-copy", 110), 110)
	equal(t, k, "txn")
	require.Zero(t, c.Status().Partitions[0].LagRecords, "the last thing in the log is a marker: it must not count as lag")
}

func TestC3NullsHeadersAndOddRecordsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	k.CreateTopic(t, "odd", 1, nil)
	cl := k.Client(t, kgo.DefaultProduceTopic("odd"))
	var hundred []kgo.RecordHeader
	for i := range 100 {
		hundred = append(hundred, kgo.RecordHeader{Key: fmt.Sprintf("h%d", i), Value: []byte{byte(i)}})
	}
	produce(t, cl,
		&kgo.Record{Key: []byte("k1"), Value: []byte("v1")}, &kgo.Record{Key: []byte("k1")}, &kgo.Record{Key: []byte("k2"), Value: []byte{}},
		&kgo.Record{Value: []byte("null key")}, &kgo.Record{Key: []byte{}, Value: []byte("empty key")},
		&kgo.Record{Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}, {Key: "a"}, {Key: "", Value: []byte("empty")}}},
		&kgo.Record{Headers: []kgo.RecordHeader{{Key: "größe ✓", Value: []byte(strings.Repeat("\x00\xff", 5<<10))}}},
		&kgo.Record{Value: []byte("hundred"), Headers: hundred},
	)
	c, _ := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
	c.Add(parts("odd", 1)...)
	caughtUp(t, c, "odd")
	equal(t, k, "odd")
	rs := read(t, k.Bootstrap(), "odd-copy", 8)
	require.Nil(t, rs[1].Value)
	require.NotNil(t, rs[2].Value)
	require.Nil(t, rs[3].Key)
	require.Empty(t, rs[0].Headers, "the default configuration adds no headers")
}

// compacted makes the cleaner run at once and leave what a reader of a compacted topic sees.
func compacted() map[string]string {
	return map[string]string{
		"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0", "segment.bytes": "1048576",
	}
}

func TestThinnedBatchesOfCompactedTopicArriveDense(t *testing.T) {
	t.Parallel()
	k := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Config: map[string]string{"log.cleaner.backoff.ms": "200"}})
	k.CreateTopic(t, "thin", 1, compacted())
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: "thin", Records: 3000, Keys: 700, BatchBytes: 8 << 10})
	cl := k.Client(t, kgo.DefaultProduceTopic("thin"))
	kept := func() int { // of the first 3,000; what is written since keeps the log rolling
		produce(t, cl, &kgo.Record{Key: []byte("roll"), Value: []byte("x")})
		d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), "thin", "thin")
		return int(d.Records)
	}
	require.Eventually(t, func() bool { return kept() < 1000 }, time.Minute, 300*time.Millisecond, "the cleaner did not run")
	c, _ := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
	c.Add(parts("thin", 1)...)
	caughtUp(t, c, "thin")
	p := c.Status().Partitions[0]
	require.Less(t, p.TargetEnd, p.Extent.End, "nothing was thinned: the test proves nothing")
	equal(t, k, "thin")
}

func TestC2DeletedKeyIsAbsentAfterCleaningTheCopy(t *testing.T) {
	t.Parallel()
	k := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka4, Config: map[string]string{"log.cleaner.backoff.ms": "200"}})
	k.CreateTopic(t, "gone", 1, map[string]string{"cleanup.policy": "compact"})
	k.CreateTopic(t, "gone-copy", 1, compacted())
	cl := k.Client(t, kgo.DefaultProduceTopic("gone"))
	produce(t, cl, &kgo.Record{Key: []byte("k1"), Value: []byte("v1")}, &kgo.Record{Key: []byte("k1")}, &kgo.Record{Key: []byte("k2"), Value: []byte{}})
	c, _ := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
	c.Add(parts("gone", 1)...)
	caughtUp(t, c, "gone")
	equal(t, k, "gone")
	require.Eventually(t, func() bool {
		produce(t, cl, &kgo.Record{Key: []byte("roll"), Value: []byte("x")})
		caughtUp(t, c, "gone")
		return !hasKey(t, k, "gone-copy", "k1") && hasKey(t, k, "gone-copy", "k2")
	}, time.Minute, 300*time.Millisecond, "k1 is still there, or k2 is not")
}

func hasKey(t *testing.T, k *kafkatest.Cluster, topic, key string) bool {
	t.Helper()
	cl := k.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	found := false
	for ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { found = found || string(r.Key) == key })
	}
	return found
}

func TestC4TimestampTypes(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	for _, src := range []string{"CreateTime", "LogAppendTime"} {
		for _, dst := range []string{"CreateTime", "LogAppendTime"} {
			for _, codec := range []string{"none", "lz4"} {
				topic := strings.ToLower(src + "-" + dst + "-" + codec)
				t.Run(topic, func(t *testing.T) {
					t.Parallel()
					k.CreateTopic(t, topic, 1, map[string]string{"message.timestamp.type": src})
					k.CreateTopic(t, topic+"-copy", 1, map[string]string{"message.timestamp.type": dst})
					kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100, Codec: codec})
					begun := time.Now()
					c, _ := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
					c.Add(parts(topic, 1)...)
					caughtUp(t, c, topic)
					d, err := kafkatest.CompareTopics(t.Context(), kafkatest.Comparison{
						Source: k.Bootstrap(), Target: k.Bootstrap(), Topic: topic, ToTopic: topic + "-copy", IgnoreTimestamps: dst == "LogAppendTime",
					})
					require.NoError(t, err)
					require.True(t, d.Equal(), d.String())
					want := "raw"
					if src == "LogAppendTime" && dst == "CreateTime" {
						want = "rewrite" // or readers of the copy would see the producers' create times
					}
					require.Equal(t, want, c.Status().Partitions[0].Path)
					if dst == "LogAppendTime" {
						require.WithinRange(t, read(t, k.Bootstrap(), topic+"-copy", 100)[99].Timestamp, begun.Add(-time.Second), time.Now())
					}
				})
			}
		}
	}
}

func TestC5FormatsThatTheOtherSideDoesNotUnderstand(t *testing.T) { //nolint:tparallel // its subtests share one broker and one topic name each
	t.Parallel()
	k := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Proxy: true, Config: map[string]string{
		"inter.broker.protocol.version": "2.8", "log.message.format.version": "2.8",
	}})
	k.Broker(0).Proxy().LimitVersions(map[int16]int16{int16(kmsg.Produce): 6, int16(kmsg.DescribeProducers): -1})

	t.Run("zstd to Produce 6", func(t *testing.T) {
		k.CreateTopic(t, "zstd", 2, nil)
		kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: "zstd", Records: 1000, Codec: "zstd"})
		c, stop := start(t, k.Bootstrap(), k.ProxyBootstrap(), t.TempDir(), nil)
		c.Add(parts("zstd", 2)...)
		caughtUp(t, c, "zstd")
		require.Equal(t, "rewrite", c.Status().Partitions[0].Path)
		stop()
		equal(t, k, "zstd")
	})
	t.Run("magic 1 at the source", func(t *testing.T) {
		k.CreateTopic(t, "old", 2, map[string]string{"message.format.version": "0.10.2"})
		old := k.Client(t, kgo.MaxVersions(kversion.V0_10_2()), kgo.DisableIdempotentWrite(), kgo.DefaultProduceTopic("old"),
			kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.ProducerBatchCompression(kgo.GzipCompression()))
		for i := range 1000 {
			old.Produce(t.Context(), &kgo.Record{Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "value %d", i)}, nil)
		}
		require.NoError(t, old.Flush(t.Context()))
		c, stop := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
		c.Add(parts("old", 2)...)
		caughtUp(t, c, "old")
		require.Equal(t, "rewrite", c.Status().Partitions[0].Path)
		stop()
		equal(t, k, "old")
	})
	t.Run("target recompresses", func(t *testing.T) {
		k.CreateTopic(t, "gzip", 2, nil)
		k.CreateTopic(t, "gzip-copy", 2, map[string]string{"compression.type": "gzip"})
		kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: "gzip", Records: 1000})
		store, err := bolt.Open(t.TempDir())
		require.NoError(t, err)
		log := newWritten(t)
		c, _, stop := startLogged(t, ends{k.Bootstrap(), k.Bootstrap()}, store, log, func(*connector.Config, *handler.Config) {})
		c.Add(parts("gzip", 2)...)
		caughtUp(t, c, "gzip")
		require.Equal(t, "raw", c.Status().Partitions[0].Path)
		require.Equal(t, 1, log.count(recompresses("gzip-copy", "gzip")))
		stop()
		equal(t, k, "gzip")
	})
}

func TestOversizedBatchIsSplit(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	k.CreateTopic(t, "large", 1, nil)
	k.CreateTopic(t, "large-copy", 1, map[string]string{"max.message.bytes": "20000"})
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: "large", Records: 2000, ValueBytes: 500, Codec: "none"})
	c, _ := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
	c.Add(parts("large", 1)...)
	caughtUp(t, c, "large")
	require.Equal(t, "rewrite", c.Status().Partitions[0].Path)
	equal(t, k, "large")
}
