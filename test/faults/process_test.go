package faults_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// rounds is how often a fault is repeated: more often in long runs.
func rounds(short, long int) int {
	if testkit.Long() {
		return long
	}
	return short
}

// lines are the lines of Kafka, by name, that a test's faults are tried on: both in long runs, only the given one in short ones, where other tests
// take the other.
func lines(short string) map[string]string {
	all := map[string]string{"kafka 3": kafkatest.Kafka3, "kafka 4": kafkatest.Kafka4}
	if !testkit.Long() {
		maps.DeleteFunc(all, func(_, version string) bool { return version != short })
	}
	return all
}

func TestKilledAtRandomInstants(t *testing.T) {
	t.Parallel()
	for name, version := range lines(kafkatest.Kafka3) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kafkatest.Shared(t, version)
			const topic = "killed"
			k.CreateTopic(t, topic, 5, nil)
			m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy")...)
			m.start(t)
			m.flowing(t, k, topic)
			m.kill(t)
			// Many small batches, so that the first deaths meet a mirror at full speed.
			backlog := kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{
				Topic: topic, Records: rounds(150_000, 1_000_000), First: 800_000_000, ValueBytes: 60, BatchBytes: 1 << 10,
			})
			f := startFeed(t, k.Bootstrap(), topic, 4000)
			commits := []string{"5s", "50ms", "500ms", "1h"}
			n := rounds(10, 100)
			for round := range n {
				m.start(t, "--commit-interval", commits[round%len(commits)])
				if round%2 == 0 {
					m.api(t) // otherwise the kill may meet the start
				}
				pass(t, upTo([]time.Duration{300 * time.Millisecond, 1500 * time.Millisecond}[round*2/n]))
				m.kill(t)
			}
			written := f.end(t) + backlog.Committed
			m.start(t)
			m.caughtUp(t, topic)
			requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", written)
			m.stop(t)
			requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", written)
		})
	}
}

func TestTerminatedUnderLoad(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "terminated"
	k.CreateTopic(t, topic, 4, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy")...)
	f := startFeed(t, k.Bootstrap(), topic, 4000)
	var slowest, slowestStart time.Duration
	for range rounds(10, 50) {
		began := time.Now()
		m.start(t)
		m.api(t)
		slowestStart = max(slowestStart, time.Since(began))
		pass(t, upTo(time.Second))
		slowest = max(slowest, m.stop(t))
	}
	written := f.end(t)
	m.start(t)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", written)
	t.Logf("slowest start %v, slowest stop %v", slowestStart, slowest)
	require.Less(t, slowest, 15*time.Second, "the brokers answered all the time, so nothing had to be waited for")
}
