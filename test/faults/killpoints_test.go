package faults_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// recordsOf is how many offsets a topic has, over all partitions; 0 if there is no such topic.
func recordsOf(t *testing.T, k *kafkatest.Cluster, topic string) (sum int64) {
	t.Helper()
	ends, err := kadm.NewClient(k.Client(t)).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	ends.Each(func(o kadm.ListedOffset) { sum += max(o.Offset, 0) })
	return sum
}

// TestKilledBetweenAppendAndAnswer: the target stores batches and nobody is told. The process is killed then, or goes on and finds its
// connections lost.
func TestKilledBetweenAppendAndAnswer(t *testing.T) {
	t.Parallel()
	k := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka4, Proxy: true, Heap: "256m"})
	const topic, to = "unanswered", "unanswered.copy"
	k.CreateTopic(t, topic, 4, nil)
	k.CreateTopic(t, to, 4, nil)
	proxy := k.Broker(0).Proxy()
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.ProxyBootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "100ms")...)
	m.start(t)
	m.flowing(t, k, topic)
	f := startFeed(t, k.Bootstrap(), topic, 3000)
	for round := range rounds(4, 30) {
		pass(t, upTo(300*time.Millisecond))
		proxy.HoldAnswers()
		held := recordsOf(t, k, to)
		require.Eventually(t, func() bool { return recordsOf(t, k, to) > held }, time.Minute, 20*time.Millisecond, "nothing is stored while answers are held")
		pass(t, upTo(500*time.Millisecond))
		if round%2 == 0 {
			m.kill(t)
			require.NoError(t, proxy.Heal())
			m.start(t)
		} else {
			proxy.Cut()
			require.NoError(t, proxy.Heal())
		}
		m.caughtUp(t, topic)
	}
	written := f.end(t)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, to, written)
}

// TestKilledBetweenAnswerAndCommit: everything is acknowledged and no position is stored, again and again: each start finds the first
// checkpoint and a target that is far ahead of it.
func TestKilledBetweenAnswerAndCommit(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const topic, to = "uncommitted", "uncommitted.copy"
	k.CreateTopic(t, topic, 4, nil)
	k.CreateTopic(t, to, 4, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "1h")...)
	f := startFeed(t, k.Bootstrap(), topic, 3000)
	for range rounds(4, 30) {
		m.start(t)
		kafkatest.AwaitRecords(t, k.Bootstrap(), to, recordsOf(t, k, to)+1000, time.Minute)
		m.kill(t)
	}
	written := f.end(t)
	m.start(t)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, to, written)
}
