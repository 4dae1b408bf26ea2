package helix_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
)

// config is how our roles reach the lab's cluster through addr.
func (l *lab) config(addr string, session time.Duration) helix.Config {
	cfg := helix.DefaultConfig()
	cfg.ZooKeeper, cfg.Cluster, cfg.SessionTimeout = addr, helix.Cluster(l.cluster), session
	return cfg
}

// open starts a session of ours on the lab's cluster and closes it at the end of the test.
func (l *lab) open() *helix.Session {
	l.Helper()
	s, err := helix.Open(l.Context(), l.config(l.addr, 20*time.Second), hclog.NewNullLogger())
	require.NoError(l, err)
	l.Cleanup(s.Close)
	return s
}

// ours is our administrator of the lab's cluster.
func (l *lab) ours() *helix.Admin {
	l.Helper()
	return helix.NewAdmin(l.open(), helix.Cluster(l.cluster))
}

// eachRelease runs a test beside each release, in a cluster that does not exist yet.
func eachRelease(t *testing.T, test func(l *lab)) {
	t.Helper()
	t.Parallel()
	for _, version := range releases {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(newLab(t, version))
		})
	}
}

// HA1, HA3, and everything else that our administrator writes, read and obeyed by Java.
func TestJavaWorksInAClusterThatOursMadeAndRuns(t *testing.T) {
	eachRelease(t, func(l *lab) {
		ctx, ours := l.Context(), l.ours()
		require.NoError(l, ours.CreateCluster(ctx, map[string]string{"allowParticipantAutoJoin": "false"}))
		require.Contains(l, l.admin.Do("clusters"), l.cluster)
		for _, instance := range []string{a, b} {
			host, port := instance[:1], instance[2:]
			require.NoError(l, ours.AddInstance(ctx, helix.Instance{Name: instance, Host: host, Port: port, Enabled: true}))
		}
		require.NoError(l, ours.AddTag(ctx, a, "blacklisted"))
		require.Equal(l, []string{a, "a", "1", "true", "[blacklisted]", "{}"}, l.admin.Do("instance", a))
		require.Equal(l, []string{a, b}, l.admin.Do("instances"))

		require.True(l, l.javaLeads().Leads())
		p := l.java.Participant(l.T, l.cluster, a) // joins without auto-join
		l.java.Participant(l.T, l.cluster, b)

		is := helix.NewIdealState(topicA, 2, 1)
		is.Assign("0", a, helix.Online)
		is.Assign("1", b, helix.Online)
		require.NoError(l, ours.AddResource(ctx, is))
		l.settled("0:a_1=ONLINE 1:b_2=ONLINE")
		read := l.admin.IdealState(topicA)
		require.Equal(l, "0:a_1=ONLINE 1:b_2=ONLINE", written(read.Replicas))
		require.Equal(l, "2", read.Simple["NUM_PARTITIONS"])

		p.Hold("2", "OFFLINE", "ONLINE")
		require.NoError(l, ours.UpdateIdealState(ctx, topicA, func(is *helix.IdealState) error {
			is.SetPartitions(3)
			is.Assign("1", a, helix.Online)
			is.Assign("2", a, helix.Online)
			return nil
		}))
		l.until(p, "begin 2 OFFLINE-ONLINE")
		l.failAndReset(a, "2", p.Fail, p.Succeed, func() { require.NoError(l, ours.ResetPartitions(ctx, a, topicA, "2")) })
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE 2:a_1=ONLINE")
		require.ErrorIs(l, ours.ResetPartitions(ctx, a, topicA, "2"), helix.ErrRefused, "HA6")

		l.obeysSwitches(ctx, ours)

		require.ErrorIs(l, ours.DropInstance(ctx, a), helix.ErrRefused, "HA5")
		require.NoError(l, ours.DropResource(ctx, topicA))
		wait(l.T, false, func() bool { return l.tree.exists("EXTERNALVIEW", topicA) })
		require.Empty(l, l.admin.Do("resources"))
	})
}

// obeysSwitches switches off and on what can be, with topicA's partitions 0, 1, 2 ONLINE on a.
func (l *lab) obeysSwitches(ctx context.Context, ours *helix.Admin) {
	l.Helper()
	const on, off, some = "0:a_1=ONLINE 1:a_1=ONLINE 2:a_1=ONLINE", "0:a_1=OFFLINE 1:a_1=OFFLINE 2:a_1=OFFLINE", "0:a_1=ONLINE 1:a_1=OFFLINE 2:a_1=OFFLINE"
	require.NoError(l, ours.EnableInstance(ctx, a, false))
	l.settled(off)
	require.NoError(l, ours.EnableInstance(ctx, a, true))
	l.settled(on)
	require.NoError(l, ours.EnablePartitions(ctx, a, topicA, []string{"2"}, false)) // HA4
	require.NoError(l, ours.EnablePartitions(ctx, a, topicA, []string{"1"}, false))
	l.settled(some)
	require.Equal(l, "1,2", l.tree.record("CONFIGS", "PARTICIPANT", a).Map["HELIX_DISABLED_PARTITION"][topicA])
	require.NoError(l, ours.EnablePartitions(ctx, a, topicA, []string{"1", "2"}, true))
	l.settled(on)
	require.NoError(l, ours.EnableResource(ctx, topicA, false))
	l.settled(off)
	require.NoError(l, ours.EnableResource(ctx, topicA, true))
	l.settled(on)

	require.NoError(l, ours.EnableCluster(ctx, false))
	require.NoError(l, ours.EnableResource(ctx, topicA, false))
	require.NoError(l, ours.EnableCluster(ctx, true))
	l.settled(off)
	require.NoError(l, ours.EnableResource(ctx, topicA, true))
	l.settled(on)
}

// HA2, and what Java's administrator writes, read and changed by ours.
func TestOurAdminReadsAndKeepsWhatJavaWrites(t *testing.T) {
	beside(t, func(l *lab) {
		ctx, ours := l.Context(), l.ours()
		require.NoError(l, ours.CheckCluster(ctx))
		l.admin.Do("addInstance", a)
		l.admin.AddResource(topicA, ideal("REPLICAS=3 MAX_PARTITIONS_PER_INSTANCE=7 0:a_1=ONLINE,b_2=OFFLINE 1:"))
		l.admin.EnablePartition(a, "another", "3", false)
		l.admin.EnablePartition(a, topicA, "1", false)

		in, err := ours.Instance(ctx, a)
		require.NoError(l, err)
		require.Equal(l, helix.Instance{
			Name: a, Host: "a", Port: "1", Enabled: true, Disabled: map[string][]string{"another": {"3"}, topicA: {"1"}},
		}, in)
		is, err := ours.IdealState(ctx, topicA)
		require.NoError(l, err)
		require.Equal(l, 2, is.Partitions())
		require.True(l, is.Enabled())
		require.Equal(l, "0:a_1=ONLINE,b_2=OFFLINE 1:", written(is.Record.Map))

		is.Assign("1", b, helix.Online)
		require.NoError(l, ours.SetIdealState(ctx, is))
		require.NoError(l, ours.EnablePartitions(ctx, a, topicA, []string{"1"}, true))
		read := l.admin.IdealState(topicA)
		require.Equal(l, "0:a_1=ONLINE,b_2=OFFLINE 1:b_2=ONLINE", written(read.Replicas))
		require.Equal(l, "3", read.Simple["REPLICAS"])
		require.Equal(l, "7", read.Simple["MAX_PARTITIONS_PER_INSTANCE"])
		require.Equal(l, "3", l.tree.record("CONFIGS", "PARTICIPANT", a).Map["HELIX_DISABLED_PARTITION"]["another"])

		l.admin.Do("dropInstance", a)
		l.admin.DropResource(topicA)
		resources, err := ours.Resources(ctx)
		require.NoError(l, err)
		require.Empty(l, resources)
		require.NoError(l, ours.DropCluster(ctx))
		require.NotContains(l, l.admin.Do("clusters"), l.cluster)
	})
}
