package faults_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// wrapSoon lets the sequences of a topic of which nothing was copied yet begin a little before they wrap.
func wrapSoon(t *testing.T, m *mirrorer, topic string, parts int) {
	t.Helper()
	s, err := bolt.Open(m.state())
	require.NoError(t, err)
	defer s.Close()
	for p := range parts {
		key := route.Partition{Topic: topic, Partition: int32(p)}
		known, err := s.Load(t.Context(), []route.Partition{key})
		require.NoError(t, err)
		at := known[key]
		next := at
		next.ProducerEpoch++
		next.Sequence, next.Opened, next.Clean = 2147483000, false, false
		require.NoError(t, s.Begin(t.Context(), &at, next))
	}
}

// Acknowledgement windows lose their heads: the followers freeze, the leader goes on appending and dies or freezes itself, and a log without its
// tail goes on. Meanwhile sequences wrap.
func TestHeadsLostInWindows(t *testing.T) {
	t.Parallel()
	src := kafkatest.Shared(t, kafkatest.Kafka3)
	dst := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Brokers: 3, Heap: "192m"})
	const topic = "windows"
	src.CreateTopic(t, topic, 2, nil)
	dst.CreateTopic(t, topic, 2, map[string]string{"min.insync.replicas": "2"})
	conf := filepath.Join(t.TempDir(), "causeway.yaml")
	require.NoError(t, os.WriteFile(conf, []byte("worker: {ack_window: 32, commit_interval: 300ms}\n"), 0o600))
	m := newMirrorer(t, "mirror", between(src.Bootstrap(), dst.Bootstrap(), topic, "--config", conf)...)
	m.start(t)
	require.Eventually(t, func() bool {
		_, parts := get(t, m.api(t)+"/api/v1/partitions")
		return strings.Count(parts, "\"mirroring\"") >= 2
	}, 60*time.Second, 100*time.Millisecond)
	m.stop(t)
	wrapSoon(t, m, topic, 2)
	m.start(t)
	f := startFeed(t, src.Bootstrap(), topic, 3000)
	pass(t, 2*time.Second)
	for round := range rounds(3, 15) {
		leader, follower := leaderAndFollower(t, dst, topic)
		other := dst.Broker(3 - leader.ID() - follower.ID())
		require.NoError(t, follower.Pause())
		require.NoError(t, other.Pause())
		pass(t, 900*time.Millisecond)
		switch round % 3 {
		case 0:
			require.NoError(t, leader.Kill())
		case 1:
			require.NoError(t, leader.Pause())
		case 2:
			m.kill(t)
			require.NoError(t, leader.Kill())
		}
		require.NoError(t, follower.Resume())
		require.NoError(t, other.Resume())
		if round%3 == 2 {
			m.start(t)
		}
		pass(t, 6*time.Second)
		if round%3 == 1 {
			require.NoError(t, leader.Resume())
		} else {
			require.NoError(t, leader.Start(t.Context()))
		}
		dst.AwaitInSync(t, topic)
		pass(t, upTo(2*time.Second))
	}
	written := f.end(t)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, src.Bootstrap(), dst.Bootstrap(), topic, "", written)
}
