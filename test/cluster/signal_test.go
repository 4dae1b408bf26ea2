package cluster_test

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestSecondSignalEndsAtOnce: the first one drains, which takes its time with a target that is silent. Others can have the partitions meanwhile, and
// who sends another one does not want to wait for that.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	target := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka4})
	topic := "second-signal"
	l.kafka.CreateTopic(t, topic, 1, nil)
	file := nativeFile(l, "one", l.zookeeper.Addr())
	own := "{name: dst, bootstrap: [" + l.brokers() + "]}"
	require.Contains(t, file, own)
	w := newWorker(t, "one", strings.Replace(file, own, "{name: dst, bootstrap: ["+strings.Join(target.Bootstrap(), ", ")+"]}", 1))
	w.start(t)
	l.assign(t, topic, 1, "one")
	w.ready(t)
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100})
	w.caughtUp(t, topic, 1)
	require.NoError(t, target.Brokers()[0].Pause())
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, First: 100, Records: 100_000})

	unanswered := regexp.MustCompile(`(?m)^causeway_in_flight_requests\{.*\} [1-9]`)
	require.Eventually(t, func() bool { _, body := get(t, w.api(t)+"/metrics"); return unanswered.MatchString(body) }, upWithin, poll)
	began := time.Now()
	require.NoError(t, syscall.Kill(w.run.Pid(), syscall.SIGTERM))
	require.Eventually(t, func() bool { return w.states(t)["draining"] == 1 }, stopWithin, poll)
	l.awaitGone(t, "one")
	t.Logf("out of the cluster %v after the first signal", time.Since(began))
	require.Less(t, time.Since(began), 15*time.Second, "partitions that were drained at once would have had no owner") // 3 s on a machine of its own
	require.Contains(t, w.log(), "drain_incomplete")
	require.True(t, w.run.Running(), "what is unanswered is not waited for")
	require.NoError(t, syscall.Kill(w.run.Pid(), syscall.SIGTERM))
	require.Eventually(t, func() bool { return !w.run.Running() }, stopWithin/8, poll)
	require.Equal(t, -1, w.run.ExitCode(), "it is the signal that ends it")
}
