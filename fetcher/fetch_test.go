package fetcher

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/causeway-mirror/causeway/route"
)

func TestEveryRecordInOrder(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		opts []kfake.Opt
	}{
		{"newest", nil},
		{"before topic ids", []kfake.Opt{kfake.MaxVersions(kversion.V2_7_0())}},
		{"before sessions", []kfake.Opt{kfake.MaxVersions(kversion.V1_0_0())}},
		{"no room for sessions", []kfake.Opt{kfake.BrokerConfigs(map[string]string{"max.incremental.fetch.session.cache.slots": "1"})}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			kc := newKfake(t, append(row.opts, kfake.NumBrokers(3), kfake.SeedTopics(4, "a", "b"))...)
			r := newRig(t, kc, fast(), 64<<20)
			const n = 40
			r.produce("a", 0, 0, n) // some before, some while it is fetched
			for _, topic := range []string{"a", "b"} {
				for p := range int32(4) {
					r.add(topic, p, newLane(0))
				}
			}
			for i, l := range r.lanes {
				topic, p := "a", int32(i)
				if i >= 4 {
					topic, p = "b", int32(i-4)
				}
				if i > 0 {
					r.produce(topic, p, 0, n)
				}
				l.requireValues(t, values(0, n))
			}
			require.NoError(t, r.f.Reachable())
		})
	}
}

func TestFollowsItsLeader(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(3), kfake.SeedTopics(1, "a"))
	r := newRig(t, kc, fast(), 64<<20)
	l := r.add("a", 0, newLane(0))
	for i := range 6 {
		require.NoError(t, kc.MoveTopicPartition("a", 0, int32(i%3)))
		r.produce("a", 0, 10*i, 10)
		l.requireValues(t, values(0, 10*(i+1)))
	}
}

func TestErrorsThatPass(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err      *kerr.Error
		topLevel bool
		count    int
	}{
		{kerr.NotLeaderForPartition, false, 3},
		{kerr.FencedLeaderEpoch, false, 2},
		{kerr.UnknownLeaderEpoch, false, 2},
		{kerr.LeaderNotAvailable, false, 1},
		{kerr.ReplicaNotAvailable, false, 1},
		{kerr.KafkaStorageError, false, 2},
		{kerr.OffsetNotAvailable, false, 2},
		{kerr.UnknownTopicOrPartition, false, 3},
		{kerr.UnknownTopicID, false, 3},
		{kerr.InconsistentTopicID, false, 2},
		{kerr.OffsetOutOfRange, false, 2}, // in range when asked
		{kerr.UnknownServerError, false, 2},
		{kerr.CorruptMessage, false, 1}, // once is not believed
		{kerr.FetchSessionIDNotFound, true, 1},
		{kerr.InvalidFetchSessionEpoch, true, 3},
		{kerr.FetchSessionTopicIDError, true, 1},
		{kerr.UnknownTopicID, true, 2},
		{kerr.UnknownServerError, true, 2},
	} {
		t.Run(fmt.Sprint(row.err.Message, row.topLevel), func(t *testing.T) {
			t.Parallel()
			kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "a"))
			r := newRig(t, kc, fast(), 64<<20)
			a, b := r.add("a", 0, newLane(0)), r.add("a", 1, newLane(0))
			r.produce("a", 0, 0, 5)
			r.produce("a", 1, 0, 5)
			a.requireValues(t, values(0, 5))
			fault := kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: row.err, TopLevel: row.topLevel, Count: row.count}
			if !row.topLevel {
				fault.Topic, fault.Partitions = "a", []int32{0}
			}
			h := kc.Fault(fault)
			eventually(t, func() bool { return h.Hits() >= row.count }, "the fault is met")
			r.produce("a", 0, 5, 20)
			r.produce("a", 1, 5, 20)
			a.requireValues(t, values(0, 25))
			b.requireValues(t, values(0, 25))
			require.Nil(t, a.fault())
			require.Nil(t, r.f.Trouble(route.Partition{Topic: "a"}))
			require.Positive(t, testutil.ToFloat64(r.f.metrics.errors.WithLabelValues(row.err.Message)))
		})
	}
}

func TestOutOfRangeTellsTheLogsEnds(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(2), kfake.SeedTopics(2, "a"))
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 10)
	require.NoError(t, kc.DeleteRecords("a", 0, 4))
	expired, beyond := r.add("a", 0, newLane(1)), r.add("a", 1, newLane(77))
	for _, l := range []*fakeLane{expired, beyond} {
		eventually(t, func() bool { return l.fault() != nil }, "the lane is told")
		require.Equal(t, route.SourceChanged, l.fault().Class)
		require.Equal(t, "OFFSET_OUT_OF_RANGE", l.fault().Code)
	}
	require.Equal(t, route.Extent{Start: 4, LastStable: 10, End: 10}, expired.fault().Extent)
	require.Equal(t, route.Extent{}, beyond.fault().Extent)
	expired.with(func() { expired.position, expired.generation = 4, 2 })
	r.wake("a", 0)
	expired.requireValues(t, values(4, 6))
	require.Empty(t, beyond.values)
}

func TestRefusedUntilWoken(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	h := kc.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "a", Err: kerr.TopicAuthorizationFailed, Count: -1})
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 3)
	l := r.add("a", 0, newLane(0))
	eventually(t, func() bool { return l.fault() != nil }, "the lane is told")
	require.Equal(t, route.Refused, l.fault().Class)
	require.ErrorIs(t, l.fault(), kerr.TopicAuthorizationFailed)
	r.wake("a", 0)
	eventually(t, func() bool { n := 0; l.with(func() { n = len(l.faults) }); return n == 2 }, "it is tried again, and refused")
	h.Remove()
	r.wake("a", 0)
	l.requireValues(t, values(0, 3))
}

// One that was to be looked up when its lane was told of a fault stayed so: the cluster was asked about it ten times a second, until Wake.
func TestParkedPartitionIsNotLookedUp(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	h := kc.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "a", Err: kerr.TopicAuthorizationFailed, Count: -1})
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 3)
	l := r.add("a", 0, newLane(0))
	eventually(t, func() bool { return l.fault() != nil }, "the lane is told")
	r.f.mu.Lock()
	m := r.f.members[route.Partition{Topic: "a"}]
	r.f.mu.Unlock()
	var lookups atomic.Int32
	kc.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		kc.KeepControl()
		lookups.Add(1)
		return nil, nil, false
	})
	r.f.router.post(ask{kind: askStale, m: m})
	eventually(t, func() bool { return lookups.Load() > 0 }, "it is looked up")
	require.Never(t, func() bool { return lookups.Load() > 5 }, 300*time.Millisecond, 20*time.Millisecond) // of each 10 ms
	h.Remove()
	r.wake("a", 0)
	l.requireValues(t, values(0, 3))
}

func TestGoneOnlyWhenItLasts(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cfg := fast()
	r := newRig(t, kc, cfg, 64<<20)
	l := r.add("a", 0, newLane(0))
	r.produce("a", 0, 0, 3)
	l.requireValues(t, values(0, 3))

	began := time.Now()
	require.NoError(t, kc.DeleteTopic("a"))
	eventually(t, func() bool { return l.fault() != nil }, "the lane is told")
	require.GreaterOrEqual(t, time.Since(began), cfg.GoneAfter)
	require.Equal(t, route.SourceChanged, l.fault().Class)
	require.Equal(t, "UNKNOWN_TOPIC_OR_PARTITION", l.fault().Code)

	// It comes back as another topic, in which the position means nothing: only who adds it anew may read that.
	require.NoError(t, kc.CreateTopic("a", 1, nil))
	r.cl = nil // it knows the old topic
	l.with(func() { l.generation, l.values = 2, nil })
	r.produce("a", 0, 100, 10)
	r.wake("a", 0)
	eventually(t, func() bool { return l.fault() != nil && l.fault().Code == "INCONSISTENT_TOPIC_ID" }, "the lane is told")
	require.Empty(t, l.values)
	r.f.Remove(route.Partition{Topic: "a"})
	r.add("a", 0, newLane(0)).requireValues(t, values(100, 10))
}

// The fetcher of a broker that is down keeps what it cannot fetch, which was taken for a proof that it is there.
func TestTopicDeletedWhileItsLeaderIsDownIsToldGone(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "a"))
	require.NoError(t, kc.MoveTopicPartition("a", 0, 0))
	var down atomic.Bool
	kc.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		kc.KeepControl()
		return nil, errGone, down.Load() && kc.CurrentNode() == 0 // ends the connection
	})
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 3)
	l := r.add("a", 0, newLane(0))
	l.requireValues(t, values(0, 3))
	down.Store(true)
	eventually(t, func() bool { return r.f.Reachable() != nil }, "no fetch is under way")
	require.NoError(t, kc.DeleteTopic("a"))
	eventually(t, func() bool { return l.fault() != nil }, "the lane is told")
	require.Equal(t, "UNKNOWN_TOPIC_OR_PARTITION", l.fault().Code)
}

func TestRecreatedTopicIsNotReadOn(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	r := newRig(t, kc, fast(), 64<<20)
	l := r.add("a", 0, newLane(0))
	r.produce("a", 0, 0, 3)
	l.requireValues(t, values(0, 3))
	require.NoError(t, kc.DeleteTopic("a"))
	require.NoError(t, kc.CreateTopic("a", 1, nil))
	r.cl = nil // it knows the old topic
	r.produce("a", 0, 100, 10)
	eventually(t, func() bool { return l.fault() != nil }, "the lane is told")
	require.Equal(t, "INCONSISTENT_TOPIC_ID", l.fault().Code)
	require.Equal(t, values(0, 3), l.values)
}

// A broker that fetches by name goes on in the new topic as if nothing had happened: only metadata shows it.
func TestRecreatedTopicIsSeenInMetadata(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.MaxVersions(kversion.V2_8_0()))
	cfg := fast()
	cfg.MetadataEvery = 100 * time.Millisecond
	r := newRig(t, kc, cfg, 64<<20)
	l := r.add("a", 0, newLane(0))
	eventually(t, func() bool { n := 0; l.with(func() { n = l.wants }); return n > 2 }, "it is fetched")
	require.NoError(t, kc.DeleteTopic("a"))
	require.NoError(t, kc.CreateTopic("a", 1, nil))
	eventually(t, func() bool { return l.fault() != nil }, "the lane is told")
	require.Equal(t, "INCONSISTENT_TOPIC_ID", l.fault().Code)
}

func TestUnreachableClusterIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	require.NoError(t, err)
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 3)
	r.add("a", 0, newLane(0)).requireValues(t, values(0, 3))
	require.NoError(t, r.f.Reachable())
	before := time.Now()
	kc.Close()
	var e *UnreachableError
	eventually(t, func() bool { return errors.As(r.f.Reachable(), &e) && e.Broker < 0 }, "no broker answers")
	require.False(t, e.Since.Before(before))
	require.Error(t, e.Err)
}

// A broker that went down after others had taken over all that it led was called unreachable for up to a minute, and the route degraded.
func TestBrokerThatNobodyNeedsIsNotMissed(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "a"))
	require.NoError(t, kc.MoveTopicPartition("a", 0, 0))
	kc.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		kc.KeepControl()
		return nil, errGone, kc.CurrentNode() == 0 // ends the connection
	})
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 3)
	l := r.add("a", 0, newLane(0))
	eventually(t, func() bool { return r.f.Reachable() != nil }, "a broker is told that hangs up")
	require.NoError(t, kc.MoveTopicPartition("a", 0, 1))
	l.requireValues(t, values(0, 3))
	eventually(t, func() bool { return r.f.Reachable() == nil }, "nobody needs it any more")
}

var errGone = errors.New("gone")

func TestMetricsAreCleanAndGoAway(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	m := newMetrics(reg, "@a@b@1")
	m.errors.WithLabelValues(linkLabel).Inc()
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	m.close()
	left, err := reg.Gather()
	require.NoError(t, err)
	require.Empty(t, left)
}
