package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestStandaloneCopiesEverySort mirrors what mirrors get wrong: transactions that commit and that abort, logs with holes, the broker's own
// timestamps, large records, and then compares.
func TestStandaloneCopiesEverySort(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "plain"), embedded(t)
	require.NoError(t, source.CreateTopic("transactions", 1, nil))
	require.NoError(t, source.CreateTopic("compacted", 1, map[string]string{"cleanup.policy": "compact"}))
	require.NoError(t, source.CreateTopic("stamped", 1, map[string]string{"message.timestamp.type": "LogAppendTime"}))
	transact(t, source, "transactions")
	var many []kgo.Record
	for i := range 200 {
		many = append(many, kgo.Record{Key: []byte{byte('a' + i%7)}, Value: bytes.Repeat([]byte{byte(i)}, 20)})
	}
	fill(t, source, "compacted", many...)
	source.Compact()
	fill(t, source, "stamped", sampleRecords()[:4]...)
	fill(t, source, "plain", kgo.Record{Value: bytes.Repeat([]byte("large"), 150_000)})
	p := start(t, "standalone", "--topics", ".*", "--listen", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "state"),
		"--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0])
	api := p.api(t)
	code, stdout, stderr := command(t.Context(), "wait", "--timeout", "20s", "--api", api)
	if code != 0 {
		_, stdout, _ = command(t.Context(), "partitions", "list", "--api", api)
	}
	require.Equal(t, 0, code, stdout+stderr+p.errs.String())
	transact(t, source, "transactions") // while it runs
	code, stdout, stderr = command(t.Context(), "wait", "--timeout", "20s", "--api", api)
	require.Equal(t, 0, code, stdout+stderr+p.errs.String())
	for _, topic := range []string{"plain", "transactions", "compacted", "stamped"} {
		code, stdout, stderr = command(t.Context(), "verify", "--topics", topic, "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0])
		require.Equal(t, 0, code, stdout+stderr)
		require.NotContains(t, stdout, "equal: 0 records", topic)
		require.NotContains(t, stdout, "equal: 200 records", "compaction has left holes, or this test shows nothing")
	}
	require.Equal(t, 0, p.end(t), p.errs.String())
}

// transact commits one transaction, aborts one and commits another.
func transact(t *testing.T, c *kfake.Cluster, topic string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID("sorts"), kgo.DefaultProduceTopic(topic))
	require.NoError(t, err)
	defer client.Close()
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		require.NoError(t, client.BeginTransaction())
		for j := range 5 {
			r := &kgo.Record{Key: []byte{byte('0' + i)}, Value: []byte{byte('0' + j)}, Timestamp: time.UnixMilli(1_700_000_000_000 + int64(j))}
			require.NoError(t, client.ProduceSync(t.Context(), r).FirstErr())
		}
		require.NoError(t, client.Flush(t.Context()))
		require.NoError(t, client.EndTransaction(t.Context(), end))
	}
}
