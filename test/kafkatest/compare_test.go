package kafkatest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// copyTopic is the simplest mirror there is: it reads n records and writes them again, but those that skip says to leave out.
func copyTopic(t *testing.T, clusters [2]*kafkatest.Cluster, topic string, n int, skip func(*kgo.Record) bool) {
	t.Helper()
	from, to := clusters[0], clusters[1]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in := from.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer in.Close()
	out := to.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for n > 0 {
		fetches := in.PollFetches(ctx)
		require.NoError(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			n--
			if !skip(r) {
				c := &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
				out.Produce(ctx, c, func(_ *kgo.Record, err error) {
					if err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
	require.NoError(t, out.Flush(ctx))
}

func TestCompareJudgesLoadedTopics(t *testing.T) {
	t.Parallel()
	src, dst := kafkatest.Shared(t, kafkatest.Kafka3), kafkatest.Shared(t, kafkatest.Kafka4)
	none := func(*kgo.Record) bool { return false }
	for _, tc := range []struct {
		name string
		load kafkatest.LoadOptions
		skip func(*kgo.Record) bool
		want kafkatest.Diff
	}{
		{"plain", kafkatest.LoadOptions{Records: 2000, Headers: 2}, none, kafkatest.Diff{Records: 2000}},
		{"uncompressed-few-keys", kafkatest.LoadOptions{Records: 500, Codec: "none", Keys: 7, First: 100}, none, kafkatest.Diff{Records: 500}},
		{"transactions", kafkatest.LoadOptions{Records: 1000, TxnRecords: 100, AbortEvery: 5, Codec: "zstd"}, none, kafkatest.Diff{Records: 800}},
		{"rated-without-keys", kafkatest.LoadOptions{Records: 300, Rate: 1000, Keys: -1}, none, kafkatest.Diff{Records: 300}},
		{"one-lost", kafkatest.LoadOptions{Records: 1000}, func(r *kgo.Record) bool { return string(r.Key) == "key-500" }, kafkatest.Diff{Records: 1000, Lost: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.load.Topic = "compare-" + tc.name
			src.CreateTopic(t, tc.load.Topic, 4, nil)
			dst.CreateTopic(t, tc.load.Topic, 4, nil)
			res := kafkatest.Load(t, src.Bootstrap(), tc.load)
			require.Equal(t, tc.want.Records, res.Committed)
			require.Equal(t, int64(tc.load.Records), res.Committed+res.Aborted)
			copyTopic(t, [2]*kafkatest.Cluster{src, dst}, tc.load.Topic, int(res.Committed), tc.skip)
			kafkatest.AwaitRecords(t, dst.Bootstrap(), tc.load.Topic, res.Committed-tc.want.Lost, time.Minute)
			got := kafkatest.Compare(t, src.Bootstrap(), dst.Bootstrap(), tc.load.Topic, "")
			require.Equal(t, tc.want.Lost == 0, got.Equal(), got)
			got.First = ""
			require.Equal(t, tc.want, got)
		})
	}
}
