package cluster_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestZooKeeperIsAwaitedAtTheStart: a worker that is started first waits, says for what, and can be ended meanwhile.
func TestZooKeeperIsAwaitedAtTheStart(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	topic := "started-first"
	l.kafka.CreateTopic(t, topic, 1, nil)
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100})
	l.assign(t, topic, 1, "one")
	proxy := l.link(t)
	proxy.Refuse()
	w := newWorker(t, "one", nativeFile(l, "one", proxy.Addr()))
	w.start(t)
	code, body := get(t, w.api(t)+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "zookeeper "+proxy.Addr())
	code, _ = get(t, w.api(t)+"/healthz")
	require.Equal(t, http.StatusOK, code, "it lives all the same")
	w.stop(t)
	w.start(t)
	w.api(t)
	require.NoError(t, proxy.Heal())
	w.ready(t)
	require.Eventually(t, func() bool { return w.states(t)["mirroring"] == 1 }, upWithin, 20*time.Millisecond)
	w.caughtUp(t, topic, 1)
	l.requireCopy(t, topic, 100)
}

// TestPathThatIsNotThereIsWaitedFor: what a slip of the pen names looks like an empty cluster, so a worker does not make it. A controller does, and
// says so: it may be a new one.
func TestPathThatIsNotThereIsWaitedFor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := newWorker(t, "one", nativeFile(l, "one", l.servers+"/not-there"))
	w.start(t)
	require.Eventually(t, func() bool {
		code, body := get(t, w.api(t)+"/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "zookeeper has no path /not-there")
	}, upWithin, poll)
	found, _, err := l.session.Exists(t.Context(), "/not-there", nil)
	require.NoError(t, err)
	require.False(t, found, "made by a worker")
	b := newBoss(t, l, "boss", l.servers+"/not-there")
	b.start(t)
	w.ready(t)
	require.Contains(t, b.run.Log(), "zookeeper has no such path, and it is created: path=/not-there")
	w.stop(t)
	b.stop(t)
}

// TestSlipInThePathOfPositionsCopiesNothing: what was copied already used to be copied again from the start.
func TestSlipInThePathOfPositionsCopiesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	topic := "slip"
	l.kafka.CreateTopic(t, topic, 1, nil)
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100})
	l.assign(t, topic, 1, "one")
	w := newWorker(t, "one", strings.Replace(nativeFile(l, "one", l.servers), "offsets: {", `offsets: {zookeeper: "`+l.servers+`/slip", `, 1))
	w.start(t)
	require.Eventually(t, func() bool { return strings.Contains(w.log(), "zookeeper has no such path") }, upWithin, poll)
	pass(t, 2*time.Second)
	states, err := l.admin.CurrentStates(t.Context(), "one", topic)
	require.True(t, err != nil || len(states) == 0, "%v: without positions nothing begins", states)
	code, body := get(t, w.api(t)+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code, "a roll-out would go on over a worker that copies nothing")
	require.Contains(t, body, "node /slip: zookeeper has no such path")
	require.NoError(t, l.session.CreateAll(t.Context(), "/slip", nil))
	l.awaitStates(t, topic, 1, "one", helix.Online)
	w.ready(t)
	w.caughtUp(t, topic, 1)
	l.requireCopy(t, topic, 100)
	w.stop(t)
}

// TestSecondWorkerOfOneNameIsRefused: it waits as long as a former self would need to go, steals nothing, and ends with one clear line.
func TestSecondWorkerOfOneNameIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	topic := "one-name"
	l.kafka.CreateTopic(t, topic, 1, nil)
	l.assign(t, topic, 1, "one")
	first, second := newWorker(t, "one", nativeFile(l, "one", l.zookeeper.Addr())), newWorker(t, "double", nativeFile(l, "one", l.zookeeper.Addr()))
	first.start(t)
	first.ready(t)
	began := time.Now()
	second.start(t)
	require.Eventually(t, func() bool { return !second.run.Running() }, upWithin, 20*time.Millisecond, "two workers have one name")
	require.GreaterOrEqual(t, time.Since(began), session, "a former self gets time to go")
	require.Equal(t, 1, second.run.ExitCode())
	require.Contains(t, second.log(), "instance one is alive in another process")
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100})
	first.ready(t)
	first.caughtUp(t, topic, 1)
	l.requireCopy(t, topic, 100)
	first.stop(t)
}

// oldFiles are a uReplicator worker's, and the options that name them.
func oldFiles(t *testing.T, l *lab, w *worker, mapping string) {
	t.Helper()
	brokers := strings.Join(l.kafka.Bootstrap(), ",")
	for name, text := range map[string]string{
		"helix":    fmt.Sprintf("zkServer=%s\ninstanceId=%s\nhelixClusterName=%s\n", l.zookeeper.Addr(), w.id, l.cluster),
		"consumer": fmt.Sprintf("bootstrap.servers=%s\nzookeeper.connect=%s\ngroup.id=%s\nauto.offset.reset=latest\n", brokers, l.zookeeper.Addr(), l.cluster),
		"producer": fmt.Sprintf("bootstrap.servers=%s\noffset.commit.interval.ms=500\n", brokers),
		"mapping":  mapping,
	} {
		path := filepath.Join(w.dir, name+".properties")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		option := name + "_config"
		if name == "mapping" {
			option = "topic_mappings"
		}
		w.args = append(w.args, "-"+option, path)
	}
	w.args = append(w.args, "-worker_port", "0", "-topic_partition_count_observer", "true")
}

// TestPositionsOfUReplicatorAreGoneOnFrom starts a worker by uReplicator's options on the offsets that uReplicator has left: what is before them
// stays away, what is after them arrives once. Later an operator sets one back, as one does for uReplicator.
func TestPositionsOfUReplicatorAreGoneOnFrom(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	topic := "taken-over"
	l.kafka.CreateTopic(t, topic, 1, nil)
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 300})
	require.NoError(t, l.session.CreateAll(t.Context(), l.offsetPath(topic, 0), []byte("120")))
	l.assign(t, topic, 1, "old")
	w := prepareWorker(t, "old")
	oldFiles(t, l, w, topic+" "+topic+".copy\n")
	w.start(t)
	l.awaitStates(t, topic, 1, "old", helix.Online)
	require.Eventually(t, func() bool { return l.stored(t, topic, 0) == "300" }, upWithin, 20*time.Millisecond)
	kafkatest.AwaitRecords(t, l.kafka.Bootstrap(), topic+".copy", 180, upWithin)

	require.NoError(t, l.session.Put(t.Context(), l.offsetPath(topic, 0), []byte("250")))
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, First: 300, Records: 10})
	kafkatest.AwaitRecords(t, l.kafka.Bootstrap(), topic+".copy", 180+10+60, upWithin) // the new ones, and then all from 250 on
	require.Eventually(t, func() bool { return l.stored(t, topic, 0) == "310" }, upWithin, 20*time.Millisecond)
	require.Contains(t, w.log(), "checkpoint_overridden")
	require.NoError(t, w.run.Stop())
	require.Equal(t, 0, w.run.ExitCode())
}
