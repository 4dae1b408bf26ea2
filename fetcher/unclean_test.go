package fetcher

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestUncleanElectionWhileNobodyFetchesIsTold has a real cluster elect a replica that lacks what was read, and grow beyond it, between two
// fetchers. Only with ZooKeeper can two of three brokers die without the third.
func TestUncleanElectionWhileNobodyFetchesIsTold(t *testing.T) {
	t.Parallel()
	c := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Brokers: 3})
	c.CreateTopic(t, "a", 1, map[string]string{"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
	c.AwaitInSync(t, "a")
	r := newRigAt(t, c.Bootstrap(), fast(), 64<<20)
	r.produce("a", 0, 0, 6)
	adm := kadm.NewClient(r.cl)
	look := func() (p kadm.PartitionDetail) {
		topics, err := adm.ListTopics(t.Context(), "a")
		if err == nil && topics["a"].Err == nil {
			p = topics["a"].Partitions[0]
		}
		return p
	}
	first := look().Leader
	others := slices.DeleteFunc([]int32{0, 1, 2}, func(id int32) bool { return id == first })
	for _, id := range others {
		require.NoError(t, c.Broker(int(id)).Kill())
	}
	require.Eventually(t, func() bool { p := look(); return slices.Equal(p.ISR, []int32{first}) }, time.Minute, 50*time.Millisecond, "the others fall out of sync")
	r.cl = nil // a client that knows the dead looks for them first
	r.produce("a", 0, 6, 4)
	l := r.add("a", 0, newLane(0))
	l.requireValues(t, values(0, 10))
	r.f.Remove(route.Partition{Topic: "a"})
	at := route.Position{Offset: l.position, LeaderEpoch: l.epoch}

	require.NoError(t, c.Broker(int(first)).Kill())
	require.NoError(t, c.Broker(int(others[0])).Start(t.Context()))
	require.Eventually(t, func() bool { return look().Leader == others[0] }, time.Minute, 50*time.Millisecond, "unclean election")
	r.cl = nil
	r.produce("a", 0, 100, 8)
	l = r.add("a", 0, laneAt(at))
	require.Eventually(t, func() bool { return l.fault() != nil || l.count() > 0 }, time.Minute, 10*time.Millisecond, "the lane hears something")
	require.Zero(t, l.count(), "it went on in another log")
	var e *DivergedError
	require.ErrorAs(t, l.fault(), &e)
	require.Equal(t, route.Offset(6), e.End)
}
