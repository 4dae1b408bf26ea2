package connector_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// moodyStore is a store that several connectors share, and that can be out of reach.
type moodyStore struct {
	offsets.Store

	down  atomic.Bool
	asked atomic.Int64 // loads while it was down
}

func newMoodyStore(t *testing.T) *moodyStore {
	t.Helper()
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return &moodyStore{Store: store}
}

func (s *moodyStore) reach() error {
	if s.down.Load() {
		s.asked.Add(1)
		return fmt.Errorf("test: %w", offsets.ErrUnavailable)
	}
	return nil
}

func (s *moodyStore) Load(ctx context.Context, ps []route.Partition) (map[route.Partition]offsets.Checkpoint, error) {
	if err := s.reach(); err != nil {
		return nil, err
	}
	return s.Store.Load(ctx, ps)
}

func (s *moodyStore) Save(ctx context.Context, cs []offsets.Checkpoint) error {
	return errors.Join(s.reach(), s.saveIfUp(ctx, cs))
}

func (s *moodyStore) saveIfUp(ctx context.Context, cs []offsets.Checkpoint) error {
	if s.down.Load() {
		return nil
	}
	return s.Store.Save(ctx, cs)
}

func (s *moodyStore) Begin(ctx context.Context, old *offsets.Checkpoint, next offsets.Checkpoint) error {
	if err := s.reach(); err != nil {
		return err
	}
	return s.Store.Begin(ctx, old, next)
}

func (s *moodyStore) BeginAll(ctx context.Context, all []offsets.Beginning) error {
	if err := s.reach(); err != nil {
		return err
	}
	return s.Store.BeginAll(ctx, all)
}

func (*moodyStore) Close() error { return nil } // newMoodyStore closes it

func (s *moodyStore) at(t *testing.T, p route.Partition) (c offsets.Checkpoint, ok bool) {
	t.Helper()
	all, err := s.Store.Load(t.Context(), []route.Partition{p})
	require.NoError(t, err)
	c, ok = all[p]
	return c, ok
}

func stateOf(c *connector.Connector, p route.Partition) connector.PartitionStatus {
	for _, s := range c.Status().Partitions {
		if s.Source == p {
			return s
		}
	}
	return connector.PartitionStatus{}
}

// A partition whose target is written in a newer epoch by another owner used to stand still after a minute of doubt, although the store says
// where to go on.
func TestLaneGoesOnFromTheNewerEpochThatIsStored(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "superseded"
	k.CreateTopic(t, topic, 1, nil)
	store := newMoodyStore(t)
	part := route.Partition{Topic: topic}
	load := func(first int) {
		kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, First: first, Records: 100})
	}
	load(0)
	ours, _ := startOn(t, k.Bootstrap(), k.Bootstrap(), store, nil)
	ours.Add(part)
	awaitCopied(t, ours, part)
	require.Eventually(t, func() bool { c, _ := store.at(t, part); return c.SourceOffset == 100 }, 10*time.Second, 5*time.Millisecond)

	ours.Suspend()
	theirs, stop := startOn(t, k.Bootstrap(), k.Bootstrap(), store, func(cfg *connector.Config) { cfg.Isolation = connector.ReadUncommitted })
	theirs.Add(part)
	load(100)
	caughtUp(t, theirs, topic)
	stop()
	c, _ := store.at(t, part)
	require.Equal(t, int16(1), c.ProducerEpoch)

	ours.Resume()
	load(200)
	caughtUp(t, ours, topic)
	d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), topic, topic+"-copy")
	require.True(t, d.Equal(), d.String())
}

func TestOfflinePartitionIsCommittedAndForgotten(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "leaving"
	k.CreateTopic(t, topic, 2, nil)
	store := newMoodyStore(t)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 1000})
	c, _ := startOn(t, k.Bootstrap(), k.Bootstrap(), store, func(cfg *connector.Config) { cfg.CommitInterval = time.Hour })
	both := parts(topic, 2)
	for _, p := range both {
		require.NoError(t, c.Online(t.Context(), p))
		require.NoError(t, c.Online(t.Context(), p))
	}
	awaitCopied(t, c, both...)
	acked := stateOf(c, both[0]).Acked
	require.NoError(t, c.Offline(t.Context(), both[0]))
	at, ok := store.at(t, both[0])
	require.True(t, ok)
	require.Equal(t, acked, at.SourceOffset)
	require.True(t, at.Clean)
	require.NoError(t, c.Offline(t.Context(), both[0]), "again")
	require.Len(t, c.Status().Partitions, 1)

	require.NoError(t, c.Online(t.Context(), both[0]))
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, First: 1000, Records: 1000})
	caughtUp(t, c, topic)
	d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), topic, topic+"-copy")
	require.True(t, d.Equal(), d.String())
}

// ONLINE is not a matter of Kafka: with both clusters away a partition is claimed, and leaves again, at once.
func TestOnlineAndOfflineDoNotWaitForKafka(t *testing.T) {
	t.Parallel()
	kafkatest.Require(t)
	store := newMoodyStore(t)
	part := route.Partition{Topic: "nowhere"}
	first := offsets.Checkpoint{Partition: part, SourceOffset: 5, TargetOffset: 5, ProducerID: 7, LeaderEpoch: -1, Writer: "w0", Clean: true}
	require.NoError(t, store.Begin(t.Context(), nil, first))
	c, _ := startOn(t, []string{"127.0.0.1:1"}, []string{"127.0.0.1:1"}, store, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, c.Online(ctx, part))
	at, _ := store.at(t, part)
	require.Equal(t, "w1", at.Writer, "not claimed")
	require.True(t, at.Clean, "a claim says nothing of what is in flight")
	require.NoError(t, c.Online(ctx, route.Partition{Topic: "nowhere", Partition: 1}), "without a checkpoint there is nothing to claim")
	require.Eventually(t, func() bool { return stateOf(c, part).State == "starting" }, 5*time.Second, 5*time.Millisecond)
	require.NoError(t, c.Offline(ctx, part))
	require.Len(t, c.Status().Partitions, 1)
}

func TestStoreOutOfReachIsWaitedFor(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "storeless"
	k.CreateTopic(t, topic, 2, nil)
	store := newMoodyStore(t)
	load := func(first int) {
		kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, First: first, Records: 1000})
	}
	load(0)
	c, stop := startOn(t, k.Bootstrap(), k.Bootstrap(), store, nil)
	both := parts(topic, 2)
	require.NoError(t, c.Online(t.Context(), both[0]))
	awaitCopied(t, c, both[0])

	store.down.Store(true)
	claimed := make(chan error, 1)
	go func() { claimed <- c.Online(t.Context(), both[1]) }() // owned by the test, which reads claimed
	before := stateOf(c, both[0]).Acked
	load(1000)
	require.Eventually(t, func() bool { return stateOf(c, both[0]).Acked > before }, 20*time.Second, 5*time.Millisecond, "what runs goes on")
	asked := store.asked.Load()
	require.Eventually(t, func() bool { return store.asked.Load() > asked+2 }, 10*time.Second, 5*time.Millisecond)
	require.Empty(t, claimed)
	c.Add(both[1]) // as if it had been claimed before
	require.Eventually(t, func() bool { return stateOf(c, both[1]).Reason != "not asked for yet" }, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, "starting", stateOf(c, both[1]).State, "a store that is away halts nothing")

	store.down.Store(false)
	require.NoError(t, <-claimed)
	caughtUp(t, c, topic)
	stop()
	d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), topic, topic+"-copy")
	require.True(t, d.Equal(), d.String())
	for _, p := range both {
		at, _ := store.at(t, p)
		require.True(t, at.Clean, p.String())
	}
}

func TestPartitionThatBeginsWhileSuspendedWaitsForResume(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "suspended"
	k.CreateTopic(t, topic, 1, nil)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100})
	c, _ := startOn(t, k.Bootstrap(), k.Bootstrap(), newMoodyStore(t), nil)
	part := route.Partition{Topic: topic}
	c.Suspend()
	require.NoError(t, c.Online(t.Context(), part))
	require.Eventually(t, func() bool { return stateOf(c, part).State == "suspended" }, 20*time.Second, 5*time.Millisecond)
	require.Zero(t, stateOf(c, part).Position, "fetches while suspended")
	c.Resume()
	caughtUp(t, c, topic)
	d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), topic, topic+"-copy")
	require.True(t, d.Equal(), d.String())
}
