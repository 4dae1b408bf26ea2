package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/conf"
	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/statemodel"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// recorder is the data path: it runs what it is told to, or breaks.
type recorder struct {
	mu        sync.Mutex
	running   map[route.Partition]bool
	suspended bool
	resumed   int
	breaks    int // so many more times Online fails

	settings map[string]operator.Topic
	done     []string // commands
	reset    map[route.Partition]bool
	cut      int // so many more times a reset fails after it is stored
}

func (r *recorder) Online(_ context.Context, p route.Partition) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.breaks > 0 {
		r.breaks--
		return errors.New("an invariant is broken")
	}
	r.running[p] = true
	return nil
}

func (r *recorder) Offline(_ context.Context, p route.Partition) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, p)
	return nil
}

func (r *recorder) Suspend() { r.hold(true) }
func (r *recorder) Resume()  { r.hold(false) }

func (r *recorder) hold(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspended = on; !on {
		r.resumed++
	}
}

func (r *recorder) look(f func(*recorder) bool) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return f(r)
	}
}

func (r *recorder) runs(n int) func() bool {
	return r.look(func(r *recorder) bool { return len(r.running) == n && !r.suspended })
}

// stage is a member of a cluster on a real ZooKeeper, behind a proxy, and a controller.
type stage struct {
	*recorder

	cluster string
	proxy   *kafkatest.Proxy
	member  *member
	session *helix.Session
	admin   *helix.Admin
	end     func() error
}

const shortSession = 2 * time.Second

func newStage(t *testing.T, cluster string) *stage {
	t.Helper()
	zookeeper := kafkatest.SharedZooKeeper(t)
	proxy, err := kafkatest.NewProxy(zookeeper.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	st := &stage{cluster: cluster, proxy: proxy, recorder: &recorder{
		running: map[route.Partition]bool{}, settings: map[string]operator.Topic{}, reset: map[route.Partition]bool{},
	}}
	at := helix.Config{ZooKeeper: zookeeper.Addr(), Cluster: helix.Cluster(cluster), SessionTimeout: time.Minute}
	st.session, err = helix.Open(t.Context(), at, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(st.session.Close)
	st.admin = helix.NewAdmin(st.session, at.Cluster)

	s := settings{File: native.Default(), id: "w1"}
	s.Coordination.ZooKeeper, s.Coordination.Cluster, s.Coordination.SessionTimeout = proxy.Addr(), cluster, conf.Duration(shortSession)
	happened := events.NewLog(s.RouteName(), s.id, 10, hclog.NewNullLogger(), prometheus.NewRegistry())
	model := statemodel.New(statemodel.DefaultConfig(), statemodel.Deps{Partitions: st.recorder, Events: happened, Log: hclog.NewNullLogger()})
	st.member, err = newMember(&s, memberDeps{
		log: hclog.NewNullLogger(), reg: prometheus.NewRegistry(), model: model, hands: st.recorder, address: "http://w1:8080",
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- st.member.run(ctx) }() // owned by the test: end waits for it
	st.end = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { require.NoError(t, st.end()) })
	return st
}

// lead sets the cluster up and controls it until the test ends.
func (st *stage) lead(t *testing.T, zookeeper string) {
	t.Helper()
	require.NoError(t, st.admin.CreateCluster(t.Context(), map[string]string{"allowParticipantAutoJoin": "true"}))
	cfg := helix.DefaultControllerConfig()
	cfg.Config, cfg.Name = helix.Config{ZooKeeper: zookeeper, Cluster: helix.Cluster(st.cluster), SessionTimeout: time.Minute}, "c"
	c := helix.NewController(cfg, helix.ControllerDeps{
		Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry(),
		Lead: func(ctx context.Context, _ *helix.Term) error { <-ctx.Done(); return nil },
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }() // owned by the test: the cleanup waits for it
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
}

func (st *stage) assign(t *testing.T, topic string, partitions int) {
	t.Helper()
	is := helix.NewIdealState(topic, partitions, 1)
	for p := range partitions {
		is.Assign(strconv.Itoa(p), "w1", helix.Online)
	}
	require.NoError(t, st.admin.AddResource(t.Context(), is))
}

func (st *stage) states(t *testing.T, topic string) []string {
	t.Helper()
	states, err := st.admin.CurrentStates(t.Context(), "w1", topic)
	if err != nil {
		return nil
	}
	var all []string
	for p, s := range states {
		all = append(all, p+" "+string(s))
	}
	slices.Sort(all)
	return all
}

const soon, poll = 20 * time.Second, 5 * time.Millisecond

// readyz said for long that nobody had let it join, and the reason stood in the log alone, after ten seconds.
func TestAZooKeeperThatRefusesIsTheReasonAtOnce(t *testing.T) {
	t.Parallel()
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	s := settings{File: native.Default(), id: "w1"}
	s.Coordination.ZooKeeper = "127.0.0.1:" + strconv.Itoa(ports[0])
	m, err := newMember(&s, memberDeps{log: hclog.NewNullLogger(), reg: prometheus.NewRegistry()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.run(ctx) }() // owned by the test, which waits below
	require.Eventually(t, func() bool {
		joined, why := m.state()
		return !joined && strings.Contains(why, "zookeeper "+s.Coordination.ZooKeeper+" does not answer") && strings.Contains(why, "connection refused")
	}, soon, poll)
	cancel()
	require.NoError(t, <-ended)
}

func TestMemberDoesWhatTheControllerSays(t *testing.T) {
	t.Parallel()
	st := newStage(t, "member-does")
	joined, why := st.member.state()
	require.False(t, joined)
	require.Contains(t, why, st.proxy.Addr())
	require.Eventually(t, func() bool {
		_, why := st.member.state()
		return strings.Contains(why, "no controller has started yet")
	}, soon, poll, "does not say what is missing")
	st.lead(t, kafkatest.SharedZooKeeper(t).Addr())
	st.assign(t, "orders", 5)
	require.Eventually(t, st.runs(5), soon, poll)
	address := helix.Cluster(st.cluster).Property("causeway", "workers", "w1")
	require.Eventually(t, func() bool {
		record, stat, err := st.session.GetRecord(t.Context(), address, nil)
		return err == nil && record.Simple["address"] == "http://w1:8080" && stat.Owner != ""
	}, soon, poll)

	require.NoError(t, st.admin.DropResource(t.Context(), "orders"))
	require.Eventually(t, st.runs(0), soon, poll)
	require.Eventually(t, func() bool { return len(st.member.model.States()) == 0 }, soon, poll, "a dropped topic is not forgotten")

	st.assign(t, "again", 3)
	require.Eventually(t, st.runs(3), soon, poll)
	require.NoError(t, st.end())
	require.True(t, st.runs(0)(), "partitions run on after the member has left")
	found, _, err := st.session.Exists(t.Context(), address, nil)
	require.NoError(t, err)
	require.False(t, found)
}

func TestMemberLeavesErrorByItself(t *testing.T) {
	t.Parallel()
	st := newStage(t, "member-error")
	st.lead(t, kafkatest.SharedZooKeeper(t).Addr())
	st.mu.Lock()
	st.breaks = 4
	st.mu.Unlock()
	st.assign(t, "broken", 2)
	require.Eventually(t, st.runs(2), soon, poll)
	require.Eventually(t, func() bool { return slices.Equal(st.states(t, "broken"), []string{"0 ONLINE", "1 ONLINE"}) }, soon, poll)
	st.mu.Lock()
	defer st.mu.Unlock()
	require.Zero(t, st.breaks)
}

func TestSilentZooKeeperSuspendsInTime(t *testing.T) {
	t.Parallel()
	st := newStage(t, "member-silent")
	st.lead(t, kafkatest.SharedZooKeeper(t).Addr())
	st.assign(t, "quiet", 3)
	require.Eventually(t, st.runs(3), soon, poll)

	st.proxy.Blackhole()
	began := time.Now()
	suspended := st.look(func(r *recorder) bool { return r.suspended })
	require.Eventually(t, suspended, soon, poll)
	require.Less(t, time.Since(began), shortSession, "another one may have had the partitions already")
	require.NoError(t, st.proxy.Heal())
	require.Eventually(t, st.runs(3), soon, poll)

	st.proxy.Refuse()
	require.Eventually(t, suspended, soon, poll)
	require.Eventually(t, func() bool {
		live, err := st.admin.LiveInstances(t.Context())
		return err == nil && len(live) == 0
	}, soon, poll)
	require.NoError(t, st.proxy.Heal())
	require.Eventually(t, st.runs(3), soon, poll, "does not join again")
	require.Eventually(t, func() bool { return len(st.states(t, "quiet")) == 3 }, soon, poll)
}

func TestForeignResourceIsNoTopic(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "x", "-1", "99999999999", "@a@b@1"} {
		_, err := partitionOf(helix.Partition{Resource: "t", Name: name})
		require.Error(t, err, name)
	}
	p, err := partitionOf(helix.Partition{Resource: "t", Name: "7"})
	require.NoError(t, err)
	require.Equal(t, route.Partition{Topic: "t", Partition: 7}, p)
}
