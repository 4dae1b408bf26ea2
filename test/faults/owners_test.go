package faults_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestThreeOwnersAtOnce runs three processes that all believe that every partition is theirs.
func TestThreeOwnersAtOnce(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	topics := []string{"owned-a", "owned-b"}
	for _, topic := range topics {
		k.CreateTopic(t, topic, 3, nil)
		kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 300, First: 900_000_000})
	}
	flags := between(k.Bootstrap(), k.Bootstrap(), "owned-a,owned-b", "--rename", "{topic}.copy", "--commit-interval", "500ms", "--streams", "2")
	first := newMirrorer(t, "first", flags...)
	first.start(t)
	for _, topic := range topics {
		first.caughtUp(t, topic)
	}
	first.stop(t)

	owners := []*mirrorer{newMirrorer(t, "one", flags...), newMirrorer(t, "two", flags...), newMirrorer(t, "three", flags...)}
	feeds := []*feed{startFeed(t, k.Bootstrap(), topics[0], 2000), startFeed(t, k.Bootstrap(), topics[1], 2000)}
	for _, m := range owners {
		first.copyTo(t, m)
		m.start(t)
	}
	for range rounds(12, 150) {
		pass(t, upTo(time.Second))
		switch m := owners[rand.IntN(len(owners))]; rand.IntN(3) {
		case 0:
			m.kill(t)
			m.start(t)
		case 1:
			m.kill(t)
			pass(t, upTo(500*time.Millisecond))
			m.start(t)
		case 2:
			m.pause(t)
			pass(t, upTo(1500*time.Millisecond))
			m.resume(t)
		}
	}
	for i, topic := range topics {
		written := feeds[i].end(t)
		for _, m := range owners {
			m.caughtUp(t, topic)
		}
		requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", written)
	}
	for _, m := range owners {
		m.stop(t)
	}
	for _, topic := range topics {
		requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", 300)
	}
}

// TestPausedOwnerWakesUp lets a second process take over from one that is not dead, and wakes that one up.
func TestPausedOwnerWakesUp(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic, to = "paused", "paused.copy"
	k.CreateTopic(t, topic, 4, nil)
	k.CreateTopic(t, to, 4, nil)
	flags := between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "1s")
	before := newMirrorer(t, "0", flags...)
	before.start(t)
	f := startFeed(t, k.Bootstrap(), topic, 4000)
	grows(t, k, to)
	for round := range rounds(3, 15) {
		pass(t, upTo(2*time.Second))
		before.pause(t)
		after := newMirrorer(t, string(rune('1'+round)), flags...)
		before.copyTo(t, after)
		after.start(t)
		grows(t, k, to)
		pass(t, upTo(time.Second))
		before.resume(t)
		pass(t, upTo(2*time.Second)) // both live
		after.pause(t)
		grows(t, k, to) // the old one is as good as the new one
		after.resume(t)
		pass(t, upTo(time.Second))
		if round%2 == 0 {
			before.kill(t)
		} else {
			before.stop(t)
		}
		before = after
	}
	written := f.end(t)
	before.caughtUp(t, topic)
	before.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, to, written)
}

// grows waits until records arrive in a topic.
func grows(t *testing.T, k *kafkatest.Cluster, topic string) {
	t.Helper()
	before := recordsOf(t, k, topic)
	require.Eventually(t, func() bool { return recordsOf(t, k, topic) > before }, caughtWithin, 20*time.Millisecond, "nothing arrives in %s", topic)
}
