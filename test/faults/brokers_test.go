package faults_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func TestBrokersKilledAndRestarted(t *testing.T) {
	t.Parallel()
	src := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Heap: "256m"})
	dst := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka4, Heap: "256m"})
	const topic = "orders"
	src.CreateTopic(t, topic, 4, nil)
	m := newMirrorer(t, "mirror", between(src.Bootstrap(), dst.Bootstrap(), topic, "--commit-interval", "300ms")...)
	m.start(t)
	m.flowing(t, src, topic)
	f := startPlainFeed(t, src.Bootstrap(), topic, 3000)
	bounce := func(b *kafkatest.Broker) {
		m.caughtUp(t, topic)
		pass(t, upTo(2*time.Second))
		require.NoError(t, b.Kill())
		pass(t, upTo(2*time.Second))
		require.NoError(t, b.Start(t.Context()))
	}
	for range rounds(1, 10) {
		bounce(dst.Broker(0))
		bounce(src.Broker(0))
		bounce(dst.Broker(0))
	}
	written := f.end(t)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, src.Bootstrap(), dst.Bootstrap(), topic, "", written)
}
