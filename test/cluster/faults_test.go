package cluster_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const partitions = 4

// TestWorkersComeAndGo hands partitions from worker to worker under load, in every way in which a worker can go.
func TestWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	topic := "come-and-go"
	l.kafka.CreateTopic(t, topic, partitions, nil)
	feed := l.startFeed(t, topic, 2000)
	one, two := newWorker(t, "one", nativeFile(l, "one", l.zookeeper.Addr())), newWorker(t, "two", nativeFile(l, "two", l.zookeeper.Addr()))
	one.start(t)
	two.start(t)
	one.ready(t)
	two.ready(t)
	l.assign(t, topic, partitions, "one")
	one.caughtUp(t, topic, partitions)

	// moved: the old owner is through before the new one begins
	l.assign(t, topic, partitions, "two")
	two.caughtUp(t, topic, partitions)
	require.Empty(t, one.states(t))

	// terminated: its partitions pause for a moment only
	began := time.Now()
	two.stop(t)
	stopped := time.Since(began)
	l.awaitGone(t, "two")
	gone := time.Since(began)
	l.assign(t, topic, partitions, "one")
	l.awaitStates(t, topic, partitions, "one", helix.Online)
	online := time.Since(began)
	one.caughtUp(t, topic, partitions)
	paused := time.Since(began)
	t.Logf("a terminated worker: ended after %v, gone %v, its partitions online elsewhere %v, caught up %v", stopped, gone, online, paused)
	require.Less(t, paused, 15*time.Second) // 3 s on a machine of its own

	// killed: its node stays for the session's time
	two.start(t)
	two.ready(t)
	one.kill(t)
	l.awaitGone(t, "one")
	l.assign(t, topic, partitions, "two")
	two.caughtUp(t, topic, partitions)

	// paused for longer than its session: another one takes over, and the first one wakes up in the belief that it owns everything
	one.start(t)
	one.ready(t)
	require.NoError(t, two.run.Pause())
	l.awaitGone(t, "two")
	l.assign(t, topic, partitions, "one")
	one.caughtUp(t, topic, partitions)
	require.NoError(t, two.run.Resume())
	// It may answer once more before it notices that time has passed; then it suspends everything, joins anew and has nothing.
	require.Eventually(t, func() bool { return len(two.states(t)) == 0 }, upWithin, 20*time.Millisecond)
	two.ready(t)
	_, told := get(t, two.api(t)+"/api/v1/events?type=lease_lost")
	require.Contains(t, told, `"lease_lost"`)

	// killed and started again at once, under the same name
	one.kill(t)
	one.start(t)
	one.caughtUp(t, topic, partitions)

	written := feed.end(t)
	one.caughtUp(t, topic, partitions)
	l.requireCopy(t, topic, written)
	one.stop(t)
	l.requireCopy(t, topic, written)
}

// TestZooKeeperComesAndGoes takes ZooKeeper away from a worker under load, for a moment and for longer than its session.
func TestZooKeeperComesAndGoes(t *testing.T) {
	t.Parallel()
	l := newLabOn(t, kafkatest.StartZooKeeper(t))
	topic := "zookeeper-comes"
	l.kafka.CreateTopic(t, topic, partitions, nil)
	proxy := l.zookeeper.Proxy()
	w := newWorker(t, "one", nativeFile(l, "one", proxy.Addr()))
	feed := l.startFeed(t, topic, 2000)
	w.start(t)
	l.assign(t, topic, partitions, "one")
	w.ready(t)
	w.caughtUp(t, topic, partitions)

	// restarted: nothing happens to the partitions
	require.NoError(t, l.zookeeper.Kill())
	require.NoError(t, l.zookeeper.Start(t.Context()))
	w.caughtUp(t, topic, partitions)

	// silent for two thirds of the session and a little: suspended, and resumed in the same session
	proxy.Blackhole()
	require.Eventually(t, func() bool { return w.states(t)["suspended"] == partitions }, session, 10*time.Millisecond, "goes on although nobody may know that it lives")
	code, body := get(t, w.api(t)+"/readyz")
	require.Equal(t, 503, code)
	require.Contains(t, body, "suspended")
	require.NoError(t, proxy.Heal())
	w.caughtUp(t, topic, partitions)
	w.ready(t)

	// cut off for longer than the session: it comes back as a new member
	proxy.Refuse()
	l.awaitGone(t, "one")
	require.Eventually(t, func() bool { return w.states(t)["suspended"] == partitions }, session, 10*time.Millisecond)
	require.NoError(t, proxy.Heal())
	w.ready(t)
	l.awaitStates(t, topic, partitions, "one", helix.Online)
	w.caughtUp(t, topic, partitions)

	// away when the worker ends: what could not be stored is found again on the target
	proxy.Refuse()
	pass(t, time.Second)
	w.stop(t)
	require.NoError(t, proxy.Heal())
	w.start(t)
	w.caughtUp(t, topic, partitions)
	proxy.Refuse()
	pass(t, time.Second)
	w.kill(t)
	require.NoError(t, proxy.Heal())
	w.start(t)
	written := feed.end(t)
	w.caughtUp(t, topic, partitions)
	l.requireCopy(t, topic, written)
	l.assign(t, topic, partitions, "")
	l.awaitStates(t, topic, partitions, "one", helix.Offline)
	sum := int64(0)
	for p := range partitions {
		n, err := strconv.ParseInt(l.stored(t, topic, p), 10, 64)
		require.NoError(t, err)
		sum += n
	}
	require.GreaterOrEqual(t, sum, written, "what is reported OFFLINE is committed")
	w.stop(t)
}
