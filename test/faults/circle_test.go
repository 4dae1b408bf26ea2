package faults_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestC18TwoWayMirrorsOfOneName: what was copied there is not copied back, and both routes are named. Each record is once on the target; what else
// the route has is copied. Names that differ are no loop, unless they are taken again and again.
func TestC18TwoWayMirrorsOfOneName(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Shared(t, kafkatest.Kafka3), kafkatest.Shared(t, kafkatest.Kafka4)
	const same, pair, grows = "ways.same", "ways.pair", "ways.grows"
	for _, k := range []*kafkatest.Cluster{a, b} {
		for _, topic := range []string{same, pair} {
			k.CreateTopic(t, topic, 1, nil)
		}
	}
	a.CreateTopic(t, grows, 1, nil)
	load(t, a, same, 0, 100)
	load(t, a, pair, 0, 10)
	load(t, b, pair, 10, 20)
	load(t, a, grows, 0, 30)
	way := func(name string, from, to *kafkatest.Cluster, names ...string) *mirrorer {
		m := newMirrorer(t, name, between(from.Bootstrap(), to.Bootstrap(), `ways\.same,ways\.pair,(.*\.)?ways\.grows`,
			"--source-name", names[0], "--target-name", names[1])...)
		m.args = append(m.args, "--config",
			m.file(t, `route: {topics: {discover_interval: 1s, rename: "{source}.{topic}", mapping: {ways.same: ways.same}}}`))
		m.start(t)
		return m
	}
	there := way("there", a, b, "sjc", "dca")
	there.caughtUp(t, same)
	there.caughtUp(t, grows)
	back := way("back", b, a, "dca", "sjc")
	for _, topic := range []string{same, "sjc." + grows} {
		e := back.awaitEvent(t, "loop_refused", topic, 60*time.Second)
		require.Contains(t, e.Reason, "@sjc@dca@1")
		require.Contains(t, e.Reason, "@dca@sjc@1")
		for _, p := range back.places(t, topic) {
			require.Equal(t, "halted", p.State)
			require.Equal(t, e.Reason, p.Reason)
		}
		_, excluded := get(t, back.api(t)+"/api/v1/excluded-topics?filter="+topic)
		require.Contains(t, excluded, "@sjc@dca@1")
	}
	back.caughtUp(t, pair)
	there.caughtUp(t, pair)

	load(t, a, same, 100, 50)
	load(t, b, same, 1000, 7)
	there.caughtUp(t, same)
	pass(t, 3*time.Second) // in which a loop would run
	code, body := back.health(t)
	require.Equal(t, http.StatusOK, code, body)
	_, excluded := get(t, there.api(t)+"/api/v1/excluded-topics?filter=ways")
	require.NotContains(t, excluded, "@dca@sjc@1", "the route that was there goes on")
	there.stop(t)
	back.stop(t)
	require.EqualValues(t, 150, recordsOf(t, a, same))
	require.EqualValues(t, 157, recordsOf(t, b, same))
	require.EqualValues(t, 20, recordsOf(t, a, "dca."+pair))
	require.EqualValues(t, 10, recordsOf(t, b, "sjc."+pair))
	require.EqualValues(t, 30, recordsOf(t, b, "sjc."+grows))
}
