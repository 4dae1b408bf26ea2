package cluster_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestSecondSignalEndsAtOnce: the first one drains, which takes its time with a target that is silent; who sends another one does not want to
// wait for that.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	target := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka4})
	topic := "second-signal"
	l.kafka.CreateTopic(t, topic, 1, nil)
	file := strings.Replace(nativeFile(l, "one", l.zookeeper.Addr()), "{name: dst, bootstrap: ["+strings.Join(l.kafka.Bootstrap(), ", ")+"]}",
		"{name: dst, bootstrap: ["+strings.Join(target.Bootstrap(), ", ")+"]}", 1)
	w := newWorker(t, "one", file)
	w.start(t)
	l.assign(t, topic, 1, "one")
	w.ready(t)
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100})
	w.caughtUp(t, topic)
	require.NoError(t, target.Brokers()[0].Pause())
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, First: 100, Records: 100_000})

	require.NoError(t, syscall.Kill(w.run.Pid(), syscall.SIGTERM))
	require.Eventually(t, func() bool { return w.states(t)["draining"] == 1 }, stopWithin, poll)
	require.True(t, w.run.Running(), "what is unanswered is not waited for")
	require.NoError(t, syscall.Kill(w.run.Pid(), syscall.SIGTERM))
	require.Eventually(t, func() bool { return !w.run.Running() }, stopWithin/8, poll)
	require.Equal(t, -1, w.run.ExitCode(), "it is the signal that ends it")
}
