package helix_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/helix/peers"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// proxy is a way to ZooKeeper that a test can cut.
func (l *lab) proxy() *kafkatest.Proxy {
	l.Helper()
	p, err := kafkatest.NewProxy(l.addr)
	require.NoError(l, err)
	l.Cleanup(func() { require.NoError(l, p.Close()) })
	return p
}

// HP19.
func TestOurParticipantReturnsAfterItsSession(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		way := l.proxy()
		w := l.workerVia(way.Addr(), a, 2*time.Second)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")
		before := l.tree.session(a)

		way.Refuse()
		l.view("")
		l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE"))
		require.NoError(l, way.Heal())
		l.settled("0:a_1=ONLINE")
		now := l.tree.session(a)
		require.NotEqual(l, before, now)
		require.Equal(l, []string{now}, l.tree.children("INSTANCES", a, "CURRENTSTATES"), "what was of the old session is carried over and gone")
		require.Equal(l, []string{"OFFLINE-ONLINE", "OFFLINE-ONLINE"}, w.ran("0"))
		require.Equal(l, []string{"OFFLINE-ONLINE", "OFFLINE-DROPPED"}, w.ran("1"), "what went while it was away is dropped")
		require.Contains(l, w.log(), "reset 0")
		require.Contains(l, w.log(), "reset 1")
	})
}

// HP20.
func TestOurParticipantReturnsWithinItsSession(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		way := l.proxy()
		w := l.workerVia(way.Addr(), a, 30*time.Second)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE")
		before := l.tree.session(a)

		way.Refuse()
		l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		wait(l.T, 1, func() int { return len(l.tree.children("INSTANCES", a, "MESSAGES")) })
		require.NoError(l, way.Heal())
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")
		require.Equal(l, before, l.tree.session(a))
		require.Equal(l, []string{"begin 0 OFFLINE-ONLINE", "end 0 OFFLINE-ONLINE", "begin 1 OFFLINE-ONLINE", "end 1 OFFLINE-ONLINE"}, w.log())
	})
}

// HP21: the first process dies without a word, the second one starts at once.
func TestOurParticipantWaitsForItsFormerSelf(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		way := l.proxy()
		first := l.workerVia(way.Addr(), a, 4*time.Second)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE")
		before := l.tree.session(a)
		way.Refuse()
		first.stop()
		require.Equal(l, before, l.tree.session(a), "ZooKeeper does not know yet")

		second := l.worker(a)
		l.settled("0:a_1=ONLINE")
		now := l.tree.session(a)
		require.NotEqual(l, before, now)
		require.Equal(l, []string{now}, l.tree.children("INSTANCES", a, "CURRENTSTATES"))
		require.Equal(l, []string{"OFFLINE-ONLINE"}, second.ran("0"))
	})
}

// HP22, HP23.
func TestOurParticipantLeavesAndComesBackToOldMessages(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		first := l.worker(a)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE")
		old := l.tree.transition("old", a, "0", "ONLINE", "OFFLINE")
		first.stop()
		require.Empty(l, l.tree.session(a), "it leaves at once")
		l.view("")

		l.tree.put(old, "INSTANCES", a, "MESSAGES", "old")
		second := l.worker(a)
		l.settled("0:a_1=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE"}, second.ran("0"))
	})
}

// HP28.
func TestTheJavaControllerOfOursDies(t *testing.T) {
	beside(t, func(l *lab) {
		partitions := size(150, 1000)
		doomed := peers.Start(l.T, l.version, l.addr, 3*time.Second)
		require.True(l, doomed.Controller(l.T, l.cluster, "ctrl_9").Leads())
		heir := l.javaLeads()
		require.False(l, heir.Leads())
		w := l.worker(a)
		w.hold("0", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal(many(partitions, a, "ONLINE")))
		w.until("begin 0 OFFLINE-ONLINE")
		require.NoError(l, doomed.Kill())
		wait(l.T, true, heir.Leads)
		w.succeed("0", "OFFLINE", "ONLINE")
		l.settled(many(partitions, a, "ONLINE"))
		for p := range partitions {
			require.Equal(l, []string{"OFFLINE-ONLINE"}, w.ran(strconv.Itoa(p)), "partition %d", p)
		}
	})
}

// HP29: only later releases know cancellation.
func TestJavaTakesBackWhatOursHasNotDone(t *testing.T) {
	beside(t, func(l *lab) {
		l.admin.Do("setConfig", "STATE_TRANSITION_CANCELLATION_ENABLED=true")
		l.javaLeads()
		w := l.worker(a)
		w.hold("0", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		w.until("begin 0 OFFLINE-ONLINE")
		l.admin.SetIdealState(topicA, ideal("0:a_1=OFFLINE 1:a_1=ONLINE"))
		wait(l.T, true, func() bool { return slices.Contains(w.log(), "end 1 OFFLINE-ONLINE") })
		w.succeed("0", "OFFLINE", "ONLINE")
		l.settled("0:a_1=OFFLINE 1:a_1=ONLINE")
	})
}

// HP30: Java prints a session id of 2^63 and more without a sign.
func TestSessionIdsWithTheHighestBit(t *testing.T) {
	t.Parallel()
	peers.Require(t)
	addr := startHighZooKeeper(t)
	for _, version := range releases {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := &lab{T: t, version: version, cluster: clusterOf(t), addr: addr}
			l.java = peers.Start(t, version, addr, 20*time.Second)
			l.admin = l.java.Admin(t, l.cluster)
			l.tree = openTree(t, addr, l.cluster)
			l.admin.AddCluster(map[string]string{"allowParticipantAutoJoin": "true"})
			l.javaLeads()
			w := l.worker(a)
			require.Len(t, l.tree.session(a), 16, "the highest bit is set")
			require.Equal(t, l.tree.session(a), l.tree.record("LIVEINSTANCES", a).Simple["SESSION_ID"])
			l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
			l.settled("0:a_1=ONLINE")
			l.admin.DropResource(topicA)
			wait(t, false, func() bool { return l.tree.exists("EXTERNALVIEW", topicA) })
			require.Equal(t, []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}, w.ran("0"))
		})
	}
}

// startHighZooKeeper starts a server whose number in its ensemble, which begins every session id, is 200, and returns its address. Only a
// server of an ensemble has a number, so it is one of one.
func startHighZooKeeper(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ports, err := kafkad.FreePorts(3)
	require.NoError(t, err)
	addr := kafkad.Loopback(ports[2])
	require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte("200"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "zoo.cfg"), fmt.Appendf(nil,
		"dataDir=%s\ntickTime=500\ninitLimit=20\nsyncLimit=20\nstandaloneEnabled=false\nadmin.enableServer=false\nserver.200=%s:%d;%s\n",
		dir, kafkad.Loopback(ports[0]), ports[1], addr), 0o600))
	libs, err := kafkatest.Libs(kafkatest.Kafka3)
	require.NoError(t, err)
	java, err := kafkatest.JDK("java")
	require.NoError(t, err)
	args, err := kafkad.Install{Java: java, Libs: libs}.Command(dir, "256m", "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
	require.NoError(t, err)
	server := kafkatest.NewProgram("zookeeper", dir, args...)
	require.NoError(t, server.Start())
	t.Cleanup(func() { require.NoError(t, server.Kill()) })
	wait(t, true, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, "the server listens")
	return addr
}
