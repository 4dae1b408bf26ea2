package faults_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestEverythingAtOnce lets two owners that both believe that every partition is theirs meet deaths and pauses of their own and of the
// target's brokers, and links that are cut, in an order that nobody chose.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	var turn sync.Mutex
	for name, version := range lines(kafkatest.Kafka3) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testkit.Long() { // more brokers at once than a small machine keeps alive: one does not start within its time
				turn.Lock()
				defer turn.Unlock()
			}
			torment(t, version)
		})
	}
}

func torment(t *testing.T, version string) {
	t.Helper()
	src := kafkatest.Shared(t, kafkatest.Kafka3)
	dst := kafkatest.Start(t, kafkatest.Options{Version: version, Brokers: 3, Proxy: true, Heap: "192m"})
	topic := "tormented-" + version
	src.CreateTopic(t, topic, 6, nil)
	dst.CreateTopic(t, topic, 6, map[string]string{"min.insync.replicas": "1"})
	flags := between(src.Bootstrap(), dst.ProxyBootstrap(), topic, "--commit-interval", "500ms")
	owners := []*mirrorer{newMirrorer(t, "one", flags...), newMirrorer(t, "two", flags...)}
	owners[0].start(t)
	owners[0].flowing(t, src, topic)
	owners[0].stop(t)
	owners[0].copyTo(t, owners[1])
	owners[0].start(t)
	owners[1].start(t)
	f := startFeed(t, src.Bootstrap(), topic, 3000)
	for range rounds(16, 100) {
		pass(t, upTo(600*time.Millisecond))
		m, b := owners[rand.IntN(2)], dst.Broker(rand.IntN(3))
		fault := rand.IntN(8)
		t.Logf("%s fault %d", time.Now().UTC().Format("15:04:05.000"), fault)
		switch fault {
		case 0, 1:
			m.kill(t)
			pass(t, upTo(300*time.Millisecond))
			m.start(t)
		case 2:
			m.pause(t)
			pass(t, upTo(3*time.Second))
			m.resume(t)
		case 3, 4:
			b.Proxy().Cut()
		case 5:
			b.Proxy().HoldAnswers()
			pass(t, upTo(2*time.Second))
			b.Proxy().Cut()
			require.NoError(t, b.Proxy().Heal())
		case 6:
			require.NoError(t, b.Pause())
			pass(t, upTo(7*time.Second)) // after 3 s it is not in sync any more, after 4 s it leads nothing and does not know it
			require.NoError(t, b.Resume())
			dst.AwaitInSync(t, topic)
		case 7:
			require.NoError(t, b.Kill())
			pass(t, upTo(3*time.Second))
			require.NoError(t, b.Start(t.Context()), "broker %d", b.ID())
			dst.AwaitInSync(t, topic)
		}
	}
	written := f.end(t)
	for _, m := range owners {
		m.caughtUp(t, topic)
	}
	for _, m := range owners {
		m.stop(t)
	}
	requireCopy(t, src.Bootstrap(), dst.Bootstrap(), topic, "", written)
}
