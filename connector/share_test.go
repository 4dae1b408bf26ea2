package connector_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/route"
)

// A worker that has one of a topic's partitions is asked to wait: the records of the other one are another worker's, and would never be seen.
func TestWaitOnAWorkerCountsItsShare(t *testing.T) {
	t.Parallel()
	kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"), kfake.SeedTopics(1, "others"))
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(kc.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	produce(t, cl, &kgo.Record{Topic: "orders", Partition: 0, Value: []byte("ours")}, &kgo.Record{Topic: "orders", Partition: 1, Value: []byte("not ours")})

	for _, share := range []bool{true, false} {
		c, stop := start(t, kc.ListenAddrs(), kc.ListenAddrs(), t.TempDir(), func(cfg *connector.Config) { cfg.Share = share })
		require.NoError(t, c.Online(t.Context(), route.Partition{Topic: "orders"}))
		awaitCopied(t, c, route.Partition{Topic: "orders"})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		present, ok, err := c.WaitCaughtUp(ctx, "orders", 0)
		cancel()
		require.NoError(t, err)
		require.Equal(t, share, ok, "share %v, %d behind", share, present)
		_, _, err = c.WaitCaughtUp(t.Context(), "others", 1)
		if share {
			require.ErrorContains(t, err, "no partition of it runs on this worker")
		} else {
			require.NoError(t, err)
		}
		stop()
	}
}
