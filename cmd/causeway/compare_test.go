package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
)

func embedded(t *testing.T, topics ...string) *kfake.Cluster {
	t.Helper()
	c, err := newEmbedded(t.Context(), kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for _, topic := range topics {
		require.NoError(t, c.CreateTopic(topic, 2, nil))
	}
	return c
}

func fill(t *testing.T, c *kfake.Cluster, topic string, records ...kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer client.Close()
	for i := range records {
		r := records[i]
		r.Topic = topic
		require.NoError(t, client.ProduceSync(t.Context(), &r).FirstErr())
	}
}

func sampleRecords() []kgo.Record {
	at := time.UnixMilli(1_700_000_000_000)
	return []kgo.Record{
		{Key: []byte("a"), Value: []byte("1"), Timestamp: at},
		{Key: []byte("b"), Value: nil, Timestamp: at.Add(time.Second)},
		{Key: nil, Value: []byte{}, Timestamp: at},
		{Key: []byte("c"), Value: []byte("3"), Timestamp: at, Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}, {Key: "h", Value: nil}}},
		{Key: []byte("d"), Value: []byte("4"), Timestamp: at, Partition: 1},
	}
}

func TestVerifyFindsEveryDifference(t *testing.T) {
	t.Parallel()
	source := embedded(t, "orders")
	fill(t, source, "orders", sampleRecords()...)
	change := func(i int, f func(*kgo.Record)) func() []kgo.Record {
		return func() []kgo.Record {
			all := sampleRecords()
			f(&all[i])
			return all
		}
	}
	for _, row := range []struct {
		name    string
		records func() []kgo.Record
		code    int
		has     string
	}{
		{"equal", sampleRecords, 0, "equal: 5 records in 2 partitions of 1 topic"},
		{"value", change(0, func(r *kgo.Record) { r.Value = []byte("2") }), 1, `orders-0 -> a.orders-0: source offset 0, target offset 0: value differs: source "1", target "2"`},
		{"key", change(3, func(r *kgo.Record) { r.Key = nil }), 1, `source offset 3, target offset 3: key differs: source "c", target null`},
		{"null became empty", change(1, func(r *kgo.Record) { r.Value = []byte{} }), 1, `value differs: source null, target ""`},
		{"empty became null", change(2, func(r *kgo.Record) { r.Value = nil }), 1, `value differs: source "", target null`},
		{"timestamp", change(1, func(r *kgo.Record) { r.Timestamp = r.Timestamp.Add(time.Millisecond) }), 1, "timestamp differs: source 2023-11-14T22:13:21.000Z, target 2023-11-14T22:13:21.001Z"},
		{"header order", change(3, func(r *kgo.Record) { r.Headers[0], r.Headers[1] = r.Headers[1], r.Headers[0] }), 1, "header 0 differs"},
		{"header lost", change(3, func(r *kgo.Record) { r.Headers = r.Headers[:1] }), 1, "number of headers differs: source 2, target 1"},
		{"record lost", func() []kgo.Record { return sampleRecords()[:4] }, 1, "orders-1 -> a.orders-1: source offset 0 is missing on the target, which ends at offset 0"},
		{"record twice", func() []kgo.Record { all := sampleRecords(); return append(all, all[4]) }, 1, `orders-1 -> a.orders-1: target offset 1 has a record that the source does not have: key "d"`},
		{"order", func() []kgo.Record { all := sampleRecords(); all[0], all[1] = all[1], all[0]; return all }, 1, "source offset 0, target offset 0: key differs"},
		{"older on the target", func() []kgo.Record { return append([]kgo.Record{{Key: []byte("old")}}, sampleRecords()...) }, 1, "source offset 0, target offset 0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			target := embedded(t, "a.orders")
			fill(t, target, "a.orders", row.records()...)
			code, stdout, stderr := command(t.Context(), "verify", "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0],
				"--topics", "orders", "--rename", "{source}.{topic}", "--source-name", "a", "--timeout", "500ms")
			require.Equal(t, row.code, code, stdout+stderr)
			require.Contains(t, stdout, row.has)
			require.Empty(t, stderr)
		})
	}
}

// Records in a partition of the target that its source does not have went unseen.
func TestVerifyLooksIntoPartitionsThatTheSourceDoesNotHave(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders"), embedded(t)
	require.NoError(t, target.CreateTopic("orders", 4, nil))
	fill(t, source, "orders", sampleRecords()...)
	fill(t, target, "orders", sampleRecords()...)
	verify := func(code int, has string) {
		found, stdout, stderr := command(t.Context(), "verify", "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0], "--topics", "orders")
		require.Equal(t, code, found, stdout+stderr)
		require.Contains(t, stdout, has)
	}
	verify(0, "equal: 5 records in 2 partitions of 1 topic")
	fill(t, target, "orders", kgo.Record{Key: []byte("stray"), Partition: 3})
	verify(1, `orders-3 -> orders-3: target offset 0 has a record that the source does not have: key "stray"`)
}

func TestVerifyPassesOverWhatTheSourceHasDeleted(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders"), embedded(t, "orders")
	fill(t, source, "orders", sampleRecords()...)
	fill(t, target, "orders", sampleRecords()...)
	require.NoError(t, source.DeleteRecords("orders", 0, 2))
	code, stdout, stderr := command(t.Context(), "verify", "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0], "--topics", "orders", "-o", "json")
	require.Equal(t, 0, code, stdout+stderr)
	require.Contains(t, stdout, `"records": 3`)
	require.Contains(t, stdout, `"older_on_target": 2`)
}

func TestVerifySamplesPartitions(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders"), embedded(t, "orders")
	code, stdout, stderr := command(t.Context(), "verify", "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0],
		"--topics", "orders", "--sample", "0.1", "-o", "yaml")
	require.Equal(t, 0, code, stdout+stderr)
	require.Contains(t, stdout, "partitions: 1\nskipped_partitions: 1")
}

func TestVerifyFromCheckpoint(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders"), embedded(t, "orders")
	fill(t, source, "orders", sampleRecords()...)
	// The target began with the source's third record, behind one of its own.
	fill(t, target, "orders", kgo.Record{Key: []byte("foreign")})
	fill(t, target, "orders", sampleRecords()[2:]...)
	dir := filepath.Join(t.TempDir(), "state")
	verify := func() (int, string, string) {
		return command(t.Context(), "verify", "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0],
			"--topics", "orders", "--from", "checkpoint", "--state", dir)
	}
	code, _, stderr := verify()
	require.Equal(t, exitIncomparable, code)
	require.Contains(t, stderr, "no positions in --state "+dir)
	require.NoDirExists(t, dir, "looking must not leave a folder")
	store, err := bolt.Open(dir)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	code, _, stderr = verify()
	require.Equal(t, exitIncomparable, code)
	require.Contains(t, stderr, "no checkpoint of orders-0")
	store, err = bolt.Open(dir)
	require.NoError(t, err)
	for p, at := range map[int32]route.Offset{0: 2, 1: 0} {
		require.NoError(t, store.Begin(t.Context(), nil, offsets.Checkpoint{
			Partition: route.Partition{Topic: "orders", Partition: p}, SourceOffset: at, TargetOffset: at / 2, ProducerID: 1, LeaderEpoch: -1,
		}))
	}
	code, _, stderr = verify()
	require.Equal(t, exitIncomparable, code, "a folder in use cannot be read")
	require.Contains(t, stderr, "another process uses this folder")
	require.NoError(t, store.Close())
	code, stdout, stderr := verify()
	require.Equal(t, 0, code, stdout+stderr)
	require.Contains(t, stdout, "equal: 3 records in 2 partitions of 1 topic\n")
}

// TestVerifyOfNothingIsNotEqual: after a clean stop nothing lies behind the stored positions, and `equal: 0 records` passed for a check of the copy.
func TestVerifyOfNothingIsNotEqual(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders"), embedded(t, "orders")
	fill(t, source, "orders", sampleRecords()...)
	fill(t, target, "orders", kgo.Record{Key: []byte("something else")})
	dir := filepath.Join(t.TempDir(), "state")
	store, err := bolt.Open(dir)
	require.NoError(t, err)
	for p, at := range map[int32]route.Offset{0: 4, 1: 1} {
		require.NoError(t, store.Begin(t.Context(), nil, offsets.Checkpoint{
			Partition: route.Partition{Topic: "orders", Partition: p}, SourceOffset: at, TargetOffset: 1 - route.Offset(p), ProducerID: 1, LeaderEpoch: -1,
		}))
	}
	require.NoError(t, store.Close())
	code, stdout, stderr := command(t.Context(), "verify", "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0],
		"--topics", "orders", "--from", "checkpoint", "--state", dir)
	require.Equal(t, exitIncomparable, code, stdout+stderr)
	require.Contains(t, stderr, "could not compare: nothing came behind the stored positions of 2 partitions, and what lies before them is not looked at")
	require.Empty(t, stdout)
}

func TestVerifyCannotCompare(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders"), embedded(t)
	args := func(topics string) []string {
		return []string{"verify", "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0], "--topics", topics}
	}
	code, _, stderr := command(t.Context(), args("nothing")...)
	require.Equal(t, exitIncomparable, code)
	require.Contains(t, stderr, "topic nothing does not exist on the source")
	code, _, stderr = command(t.Context(), args("none.*")...)
	require.Equal(t, exitIncomparable, code)
	require.Contains(t, stderr, "no topic of the source matches")
	code, stdout, _ := command(t.Context(), args("orders")...)
	require.Equal(t, exitFailure, code, "a topic that is not there is a difference")
	require.Contains(t, stdout, "topic orders does not exist on the target")
}

// TestVerifyComparesTheOthers: a topic that cannot be compared must neither pass for equal nor hide what the others are.
func TestVerifyComparesTheOthers(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders", "a", "b", "lost"), embedded(t, "orders", "both")
	fill(t, source, "orders", sampleRecords()...)
	fill(t, target, "orders", sampleRecords()...)
	verify := func(topics string, more ...string) (int, string) {
		code, stdout, stderr := command(t.Context(), append([]string{
			"verify", "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0], "--topics", topics,
			"--config", writeFile(t, "route: {topics: {mapping: {a: both, b: both}}}"),
		}, more...)...)
		return code, stdout + stderr
	}
	code, text := verify("orders,nothing")
	require.Equal(t, exitIncomparable, code, text)
	require.Contains(t, text, "not compared: topic nothing does not exist on the source; otherwise equal: 5 records in 2 partitions of 1 topic")
	code, text = verify("orders,nothing", "-o", "json")
	require.Equal(t, exitIncomparable, code, text)
	require.Contains(t, text, `"equal": false`)
	require.Contains(t, text, `"topic nothing does not exist on the source"`)
	code, text = verify("orders,lost")
	require.Equal(t, exitFailure, code, text)
	require.Contains(t, text, "different: topic lost does not exist on the target; the other topics are equal: 5 records")
	code, text = verify("orders,a,b")
	require.Equal(t, exitIncomparable, code, text)
	require.Contains(t, text, "not compared: topics a and b share both and cannot be compared; otherwise equal: 5 records")
	code, text = verify("a,b")
	require.Equal(t, exitIncomparable, code, text)
	require.Contains(t, text, "could not compare: topics a and b share both and cannot be compared")
	fill(t, source, "orders", sampleRecords()[:1]...)
	code, text = verify("orders,nothing")
	require.Equal(t, exitFailure, code, text)
	require.Contains(t, text, "source offset 4 is missing on the target")
	require.Contains(t, text, "; not compared: topic nothing does not exist on the source")
}
