package faults_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// sides are the two ways that may be bad: each test takes the other one directly.
func sides(k *kafkatest.Cluster) map[string]struct{ src, dst []string } {
	return map[string]struct{ src, dst []string }{
		"source": {k.ProxyBootstrap(), k.Bootstrap()},
		"target": {k.Bootstrap(), k.ProxyBootstrap()},
	}
}

func TestLinkCutAndBlackholed(t *testing.T) {
	t.Parallel()
	for name, version := range lines(kafkatest.Kafka4) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kafkatest.Shared(t, version) // no other test of this package goes through its proxy
			proxy := k.Broker(0).Proxy()
			t.Run("stopped in the dark", func(t *testing.T) { stoppedInTheDark(t, k) }) //nolint:paralleltest // all of them use the proxy
			for side, way := range sides(k) {
				t.Run(side, func(t *testing.T) { //nolint:paralleltest // all of them use the proxy
					topic := "cut-" + side
					k.CreateTopic(t, topic, 4, nil)
					m := newMirrorer(t, "mirror", between(way.src, way.dst, topic, "--rename", "{topic}.copy", "--commit-interval", "300ms")...)
					m.start(t)
					m.flowing(t, k, topic)
					f := startFeed(t, k.Bootstrap(), topic, 4000)
					for round := range rounds(20, 200) {
						if round%5 == 4 {
							m.caughtUp(t, topic) // it must go on between, not only at the end
						}
						proxy.SetDelay(upTo(20 * time.Millisecond)) // so that there is something in flight to lose
						pass(t, upTo(400*time.Millisecond))
						proxy.Cut()
					}
					proxy.SetDelay(0)
					proxy.Blackhole()
					pass(t, time.Duration(rounds(4, 60))*time.Second)
					require.NoError(t, proxy.Heal())
					pass(t, time.Second)
					proxy.Refuse()
					pass(t, time.Second)
					require.NoError(t, proxy.Heal())
					written := f.end(t)
					m.caughtUp(t, topic)
					m.stop(t)
					requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", written)
				})
			}
		})
	}
}

// stoppedInTheDark ends the process while the target answers nothing: it must leave in time, and what was unanswered is found out later.
func stoppedInTheDark(t *testing.T, k *kafkatest.Cluster) {
	t.Helper()
	const topic = "dark"
	k.CreateTopic(t, topic, 4, nil)
	config := filepath.Join(t.ArtifactDir(), "causeway.yaml")
	require.NoError(t, os.WriteFile(config, []byte("worker: {shutdown_timeout: 5s}\n"), 0o600))
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.ProxyBootstrap(), topic, "--rename", "{topic}.copy", "--config", config)...)
	m.start(t)
	m.flowing(t, k, topic)
	proxy := k.Broker(0).Proxy()
	written := int64(0)
	for round, dark := range []func(){proxy.HoldAnswers, proxy.Blackhole, proxy.Refuse} {
		f := startFeed(t, k.Bootstrap(), topic, 2000)
		pass(t, 500*time.Millisecond)
		dark()
		written += f.end(t) // until here, what is unanswered grows
		took := m.stop(t)
		t.Logf("round %d: stopped in %v", round, took)
		require.Less(t, took, 10*time.Second, "shutdown_timeout is 5s")
		require.NoError(t, proxy.Heal())
		m.start(t)
		m.caughtUp(t, topic)
	}
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", written)
}
