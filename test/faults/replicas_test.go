package faults_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// leaderAndFollower finds the brokers of a topic's first partition: its leader and another one.
func leaderAndFollower(t *testing.T, k *kafkatest.Cluster, topic string) (leader, follower *kafkatest.Broker) {
	t.Helper()
	topics, err := kadm.NewClient(k.Client(t)).ListTopics(t.Context(), topic)
	require.NoError(t, err)
	p := topics[topic].Partitions[0]
	for _, id := range p.Replicas {
		if id != p.Leader {
			follower = k.Broker(int(id))
		}
	}
	return k.Broker(int(p.Leader)), follower
}

// TestLeaderLostWhileFollowerSleeps: a follower lags, or is still held to be in sync while it hangs; the mirror dies with batches that not
// every replica has; then the leader dies and another log, perhaps a shorter one, goes on.
func TestLeaderLostWhileFollowerSleeps(t *testing.T) {
	t.Parallel()
	src := kafkatest.Shared(t, kafkatest.Kafka3)
	dst := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Brokers: 3, Heap: "256m"})
	const topic = "replicated"
	src.CreateTopic(t, topic, 3, nil)
	dst.CreateTopic(t, topic, 3, map[string]string{"min.insync.replicas": "1"})
	m := newMirrorer(t, "mirror", between(src.Bootstrap(), dst.Bootstrap(), topic, "--commit-interval", "200ms")...)
	m.start(t)
	m.flowing(t, src, topic)
	f := startFeed(t, src.Bootstrap(), topic, 2000)
	for round := range rounds(2, 12) {
		leader, follower := leaderAndFollower(t, dst, topic)
		require.NoError(t, follower.Pause())
		pass(t, upTo(5*time.Second)) // out of sync after 3 s, out of the cluster after 4 s
		m.kill(t)
		m.start(t)
		pass(t, upTo(time.Second))
		require.NoError(t, leader.Kill())
		if round%2 == 1 {
			m.kill(t)
			m.start(t)
		}
		pass(t, 2*time.Second+upTo(4*time.Second))
		require.NoError(t, follower.Resume())
		require.NoError(t, leader.Start(t.Context()))
		dst.AwaitInSync(t, topic)
	}
	written := f.end(t)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, src.Bootstrap(), dst.Bootstrap(), topic, "", written)
}
