package connector_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
)

// cutStore is a store that is lost after its first beginning.
type cutStore struct {
	offsets.Store

	begun atomic.Int64
}

func (s *cutStore) BeginAll(ctx context.Context, all []offsets.Beginning) error {
	if s.begun.Add(1) > 1 {
		return errors.New("cut")
	}
	return errors.Join(s.Store.BeginAll(ctx, all[:1]), errors.New("cut"))
}

// TestStartCutBetweenFirstCheckpointsStillStartsAtLatest: with `start: latest`, what a topic of the first discovery held stays away, also
// when the process ended after it had stored the first checkpoint of one partition and not yet of the other.
func TestStartCutBetweenFirstCheckpointsStillStartsAtLatest(t *testing.T) {
	t.Parallel()
	kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"), kfake.SeedTopics(1, "later"))
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(kc.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	record := func(topic string, p int32) *kgo.Record {
		return &kgo.Record{Topic: topic, Partition: p, Value: []byte("x")}
	}
	produce(t, cl, record("orders", 0), record("orders", 1), record("later", 0))

	state := t.TempDir()
	latest := func(cfg *connector.Config) { cfg.Start = connector.StartLatest }
	store, err := bolt.Open(state)
	require.NoError(t, err)
	r := offsets.NoRoute()
	r.Discovered, r.FirstTopics = true, map[string]int32{"orders": 2}
	require.NoError(t, store.SaveRoute(t.Context(), r))
	cut := &cutStore{Store: store}
	c, stop := startOn(t, kc.ListenAddrs(), kc.ListenAddrs(), cut, latest)
	c.Add(parts("orders", 2)...)
	require.Eventually(t, func() bool { return cut.begun.Load() > 1 }, 20*time.Second, 5*time.Millisecond)
	stop()

	c, stop = start(t, kc.ListenAddrs(), kc.ListenAddrs(), state, latest)
	c.Add(append(parts("orders", 2), route.Partition{Topic: "later"})...)
	awaitCopied(t, c, append(parts("orders", 2), route.Partition{Topic: "later"})...)
	produce(t, cl, record("orders", 0), record("orders", 1))
	awaitTarget := func(topic string, p int32, want int64) {
		t.Helper()
		require.Eventually(t, func() bool {
			info := kc.PartitionInfo(topic, p)
			return info != nil && info.HighWatermark >= want
		}, 20*time.Second, 5*time.Millisecond)
	}
	awaitTarget("orders-copy", 0, 1)
	awaitTarget("orders-copy", 1, 1)
	awaitTarget("later-copy", 0, 1)
	stop()
	require.Equal(t, int64(1), kc.PartitionInfo("orders-copy", 0).HighWatermark)
	require.Equal(t, int64(1), kc.PartitionInfo("orders-copy", 1).HighWatermark, "the record from before the first discovery's start stays away")
}
