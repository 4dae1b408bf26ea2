package controller

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// limit is how long anything may take that a test waits for.
const limit = 30 * time.Second

// idle is a worker that does at once what it is told.
type idle struct{}

func (idle) Transition(context.Context, helix.Transition) error { return nil }
func (idle) Reset(context.Context, []helix.Partition)           {}
func (idle) Suspend()                                           {}
func (idle) Resume()                                            {}

// stand is a controller on a real ZooKeeper.
type stand struct {
	*Controller

	zookeeper string
	cluster   helix.Cluster
	session   *helix.Session // to look, and to write as others do
}

func newStand(t *testing.T) *stand {
	t.Helper()
	r := &stand{zookeeper: kafkatest.SharedZooKeeper(t).Addr() + "/" + strings.ToLower(t.Name()), cluster: "mirrors"}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cfg := helix.DefaultConfig()
	cfg.ZooKeeper, cfg.Cluster = r.zookeeper, r.cluster
	var err error
	r.session, err = helix.Open(ctx, cfg, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(r.session.Close)
	return r
}

// start lets the controller lead until the test ends.
func (r *stand) start(t *testing.T) *Term {
	t.Helper()
	cfg := helix.DefaultControllerConfig()
	cfg.ZooKeeper, cfg.Cluster, cfg.Name = r.zookeeper, r.cluster, "c1"
	h := NewHelix(cfg, "http://c1", hclog.NewNullLogger(), prometheus.NewRegistry())
	t.Cleanup(h.Close)
	registry := prometheus.NewRegistry()
	who := route.Route{Source: "a", Target: "b", ID: "1"}
	var err error
	r.Controller, err = New(DefaultConfig(), Deps{
		Log: hclog.NewNullLogger(), Registerer: registry, Route: who, ID: "c1", Coordinator: h,
		Events: events.NewLog(who, "c1", 100, hclog.NewNullLogger(), registry),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }() // owned by the test: its cleanup waits for it
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	var term *Term
	require.Eventually(t, func() bool {
		term, err = r.Term()
		return err == nil
	}, limit, 10*time.Millisecond)
	return term
}

// join lets a worker take part until the test ends.
func (r *stand) join(t *testing.T, name string) {
	t.Helper()
	cfg := helix.DefaultParticipantConfig()
	cfg.ZooKeeper, cfg.Cluster, cfg.Instance = r.zookeeper, r.cluster, name
	p := helix.NewParticipant(cfg, helix.ParticipantDeps{Handler: idle{}, Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }() // owned by the test: its cleanup waits for it
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// online waits until so many partitions are.
func online(t *testing.T, term *Term, partitions int) {
	t.Helper()
	require.Eventually(t, func() bool { return term.Validate().Online == partitions }, limit, 20*time.Millisecond, "%d partitions online", partitions)
}

func TestWhatUReplicatorLeftIsTakenOver(t *testing.T) {
	r := newStand(t)
	ctx := t.Context()
	admin := helix.NewAdmin(r.session, r.cluster)
	require.NoError(t, admin.CreateCluster(ctx, map[string]string{"allowParticipantAutoJoin": "true", "AutoBalancing": "enable"}))
	ideal := helix.NewIdealState("orders", 3, 1)
	ideal.Assign("0", "w_1", helix.Online)
	ideal.Assign("1", "w_1", helix.Offline) // blacklisted
	require.NoError(t, admin.AddResource(ctx, ideal))
	require.NoError(t, r.session.CreateAll(ctx, r.cluster.Root()+"/BLACKLISTED_TOPICS/gone", nil))
	for path, text := range map[string]string{ // what others may have left behind
		"/IDEALSTATES/cut":   `{"id":"cut","simpleF`,
		"/IDEALSTATES/other": `{"id":"other","simpleFields":{"REBALANCE_MODE":"FULL_AUTO","STATE_MODEL_DEF_REF":"MasterSlave"},"mapFields":{},"listFields":{}}`,
		"/IDEALSTATES/odd":   `{"id":"odd","simpleFields":{"REBALANCE_MODE":"CUSTOMIZED","STATE_MODEL_DEF_REF":"OnlineOffline","NUM_PARTITIONS":"x"},"mapFields":{"odd_0":{"w_1":"ONLINE"}},"listFields":{}}`,
	} {
		require.NoError(t, r.session.CreateAll(ctx, r.cluster.Root()+path, []byte(text)))
	}
	r.join(t, "w_1")
	term := r.start(t)
	require.Eventually(t, func() bool {
		topic, view, err := term.Topic("orders")
		return err == nil && topic.Owner(2) == "w_1" && view[0]["w_1"] == Online && view[2]["w_1"] == Online
	}, limit, 20*time.Millisecond, "a partition without a worker gets one")
	require.Equal(t, []route.Partition{part("orders", 1)}, term.Off())
	require.Equal(t, map[string]bool{"gone": true}, term.State().Excluded)
	require.NoError(t, term.Add(ctx, "payments", 2))
	online(t, term, 4)
}

// A configuration of the cluster that can't be read kept every controller from leading.
func TestTornSettingsKeepNobodyFromLeading(t *testing.T) {
	for name, text := range map[string]string{"cut": `{"id":"mirrors","simpleF`, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			r := newStand(t)
			ctx := t.Context()
			require.NoError(t, helix.NewAdmin(r.session, r.cluster).CreateCluster(ctx, map[string]string{"allowParticipantAutoJoin": "true"}))
			require.NoError(t, helix.NewAdmin(r.session, r.cluster).AddInstance(ctx, helix.Instance{Name: "w_1", Enabled: true}))
			require.NoError(t, r.session.Put(ctx, r.cluster.Root()+"/CONFIGS/CLUSTER/mirrors", []byte(text)))
			r.join(t, "w_1")
			term := r.start(t)
			require.True(t, term.Balancing())
			require.NoError(t, term.Add(ctx, "orders", 1))
			online(t, term, 1)
		})
	}
}

// An ideal state that could not be read was written over, without its blacklist, or made each rebalance fail.
func TestATornIdealStateIsLeftAloneAndHoldsUpNobody(t *testing.T) {
	r := newStand(t)
	ctx := t.Context()
	admin := helix.NewAdmin(r.session, r.cluster)
	require.NoError(t, admin.CreateCluster(ctx, map[string]string{"allowParticipantAutoJoin": "true"}))
	const torn = `{"id":"before","simpleFields":{"NUM_PARTITIONS":"2"`
	require.NoError(t, r.session.CreateAll(ctx, r.cluster.Root()+"/IDEALSTATES/before", []byte(torn)))
	term := r.start(t)
	r.join(t, "w_1")
	require.Eventually(t, func() bool { return term.State().Workers["w_1"].usable() }, limit, 10*time.Millisecond)
	var invalid *InvalidError
	require.ErrorAs(t, term.Expand(ctx, "before", 2), &invalid, "as discovery does")
	require.ErrorAs(t, term.Add(ctx, "before", 2), &invalid)
	require.ErrorAs(t, term.Move(ctx, part("before", 0), "w_1"), &invalid)

	require.NoError(t, term.Add(ctx, "later", 1))
	require.NoError(t, term.Add(ctx, "good", 1))
	online(t, term, 2)
	_, err := r.session.Set(ctx, r.cluster.Root()+"/IDEALSTATES/later", []byte(torn), helix.AnyVersion)
	require.NoError(t, err)
	r.join(t, "w_2")
	require.Eventually(t, func() bool { return term.State().Workers["w_2"].usable() }, limit, 10*time.Millisecond)
	require.NoError(t, term.Drain(ctx, "w_1", true))
	_, err = term.Rebalance(ctx)
	require.NoError(t, err)
	require.Equal(t, "w_2", term.State().Topics["good"].Owner(0))
	require.Equal(t, map[string]bool{"before": true, "later": true}, term.State().Torn)
	for _, name := range []string{"before", "later"} {
		text, _, err := r.session.Get(ctx, r.cluster.Root()+"/IDEALSTATES/"+name, nil)
		require.NoError(t, err)
		require.Len(t, text, len(torn), name)
		require.False(t, json.Valid(text), "%s was written over", name)
	}

	repaired, err := helix.NewIdealState("later", 3, 1).Record.Encode()
	require.NoError(t, err)
	_, err = r.session.Set(ctx, r.cluster.Root()+"/IDEALSTATES/later", repaired, helix.AnyVersion)
	require.NoError(t, err)
	require.NoError(t, term.Delete(ctx, "before"))
	require.Eventually(t, func() bool {
		s := term.State()
		return len(s.Torn) == 0 && s.Topics["later"].Partitions == 3
	}, limit, 10*time.Millisecond)
	require.NoError(t, term.Add(ctx, "before", 2))
}

// One typing error filled the leader's memory.
func TestAnIdealStateOfTwoBillionPartitionsIsBounded(t *testing.T) {
	c := &helixCluster{odd: map[string]bool{}, log: hclog.NewNullLogger()}
	ideal := helix.NewIdealState("t", 2_000_000_000, 1)
	ideal.Assign("2", "w1", helix.Online)
	ideal.Assign("2000000000", "w1", helix.Online)
	topic := c.topicLocked("t", ideal)
	require.EqualValues(t, 3, topic.Partitions)
	require.Len(t, topic.Assigned, 1)
}

// A record that was torn made every change of what it holds fail until it was repaired by hand.
func TestWishesReplaceRecordsThatCannotBeRead(t *testing.T) {
	r := newStand(t)
	ctx := t.Context()
	term := r.start(t)
	r.join(t, "w_1")
	require.Eventually(t, func() bool { return term.State().Workers["w_1"].usable() }, limit, 10*time.Millisecond)
	require.NoError(t, term.Add(ctx, "orders", 1))
	for _, path := range []string{"topics/orders", "commands/orders/0", "pins/orders/0"} {
		require.NoError(t, r.session.CreateAll(ctx, r.cluster.Property(propertyFolder)+"/"+path, []byte(`{"id":"x"`)))
	}
	require.NoError(t, term.PauseTopic(ctx, "orders", true))
	require.NoError(t, term.Retry(ctx, part("orders", 0)))
	require.NoError(t, term.Move(ctx, part("orders", 0), "w_1"))
	for _, path := range []string{"topics/orders", "commands/orders/0", "pins/orders/0"} {
		_, _, err := r.session.GetRecord(ctx, r.cluster.Property(propertyFolder)+"/"+path, nil)
		require.NoError(t, err, path)
	}
}

// A controller that was deposed could exclude topics all the same.
func TestADeposedControllerExcludesNothing(t *testing.T) {
	r := newStand(t)
	ctx := t.Context()
	term := r.start(t)
	require.NoError(t, term.Exclude(ctx, "before", true))
	require.NoError(t, term.Exclude(ctx, "before", true), "repeating is no error")
	at := r.cluster.Property(propertyFolder, "epoch")
	text, _, err := r.session.Get(ctx, at, nil)
	require.NoError(t, err)
	_, err = r.session.Set(ctx, at, text, helix.AnyVersion) // as the next one does
	require.NoError(t, err)
	require.ErrorIs(t, term.Exclude(ctx, "x", true), ErrNotLeader)
	require.ErrorIs(t, term.Exclude(ctx, "before", false), ErrNotLeader)
	names, err := r.session.Children(ctx, r.cluster.Root()+"/BLACKLISTED_TOPICS", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"before"}, names)
}

// While one caller waited for ZooKeeper all others waited for him, whatever their own patience.
func TestWhoLeadsIsAnsweredInTimeWithoutZooKeeper(t *testing.T) {
	cfg := helix.DefaultControllerConfig()
	cfg.ZooKeeper, cfg.Cluster, cfg.Name = "127.0.0.1:1", "mirrors", "c1"
	h := NewHelix(cfg, "http://c1", hclog.NewNullLogger(), prometheus.NewRegistry())
	<-h.connecting // somebody connects
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	_, err := h.Workers(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = h.Leader(short)
	require.NoError(t, err)
	h.connecting <- struct{}{}
	h.Close()
}

func TestOthersWritesAreSeenAndNotUndone(t *testing.T) {
	r := newStand(t)
	term := r.start(t)
	r.join(t, "w_1")
	ctx := t.Context()
	admin := helix.NewAdmin(r.session, r.cluster)
	require.NoError(t, term.Add(ctx, "orders", 2))
	online(t, term, 2)
	require.NoError(t, admin.UpdateIdealState(ctx, "orders", func(s *helix.IdealState) error {
		s.Record.Simple["OWN"] = "kept"
		s.Assign("0", "w_1", helix.Offline)
		return nil
	}))
	require.NoError(t, term.Expand(ctx, "orders", 3))
	ideal, err := admin.IdealState(ctx, "orders")
	require.NoError(t, err)
	require.Equal(t, 3, ideal.Partitions())
	require.Equal(t, "kept", ideal.Record.Simple["OWN"])
	require.Equal(t, map[string]string{"w_1": "OFFLINE"}, ideal.Record.Map["0"])

	require.NoError(t, admin.SetConfig(ctx, helix.ClusterScope(), map[string]string{"AutoBalancing": "disable"}))
	require.Eventually(t, func() bool { return !term.Balancing() }, limit, 20*time.Millisecond)
	require.NoError(t, admin.AddTag(ctx, "w_1", "blacklisted"))
	require.Eventually(t, func() bool { return term.State().Workers["w_1"].Draining }, limit, 20*time.Millisecond)
	require.NoError(t, r.session.CreateAll(ctx, r.cluster.Root()+"/BLACKLISTED_TOPICS/x", nil))
	require.Eventually(t, func() bool { return term.State().Excluded["x"] }, limit, 20*time.Millisecond)
	require.NoError(t, term.Exclude(ctx, "x", false))
	require.NoError(t, term.Delete(ctx, "orders"))
	require.NoError(t, term.Add(ctx, "orders", 1), "a topic may be added again at once")
	require.True(t, isGone(term.Drain(ctx, "nosuch", true)))
}

// A partition could not be moved to a worker that had just been enabled: what a watch told of its drain came later than the answer.
func TestEnabledWorkerDoesNotDrainAgain(t *testing.T) {
	r := newStand(t)
	term := r.start(t)
	r.join(t, "w_1")
	require.Eventually(t, func() bool { return term.State().Workers["w_1"].usable() }, limit, 20*time.Millisecond)
	for range 20 {
		require.NoError(t, term.Drain(t.Context(), "w_1", true))
		require.NoError(t, term.Drain(t.Context(), "w_1", false))
		term.cluster.(*helixCluster).refresh() // what the watches have told so far
		require.False(t, term.State().Workers["w_1"].Draining)
	}
	require.NoError(t, helix.NewAdmin(r.session, r.cluster).AddTag(t.Context(), "w_1", drainTag))
	require.Eventually(t, func() bool { return term.State().Workers["w_1"].Draining }, 2*ownWriteHoldTime, 20*time.Millisecond, "what others write counts, too")
}

func TestPinsOutliveATerm(t *testing.T) {
	r := newStand(t)
	ctx := t.Context()
	t.Run("first", func(t *testing.T) {
		term := r.start(t)
		r.join(t, "w_1")
		r.join(t, "w_2")
		require.Eventually(t, func() bool {
			s := term.State()
			return s.Workers["w_1"].usable() && s.Workers["w_2"].usable()
		}, limit, 20*time.Millisecond)
		require.NoError(t, term.Add(ctx, "orders", 4))
		for p := range int32(4) {
			require.NoError(t, term.Move(ctx, part("orders", p), "w_2"))
		}
		online(t, term, 4)
	})
	r.join(t, "w_1")
	r.join(t, "w_2")
	term := r.start(t)
	online(t, term, 4)
	require.Len(t, term.State().Pins, 4)
	_, err := term.Rebalance(ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"w_2": 4}, term.Validate().Ideal)
	require.NoError(t, term.Move(ctx, part("orders", 0), ""))
	require.Len(t, term.State().Pins, 3)
}

// The pins of a topic that was deleted held for another one of its name, on a worker that may be gone by then.
func TestPinsGoWithTheirTopic(t *testing.T) {
	r := newStand(t)
	term := r.start(t)
	r.join(t, "w_1")
	require.Eventually(t, func() bool { return term.State().Workers["w_1"].usable() }, limit, 10*time.Millisecond)
	for _, name := range []string{"orders", "payments"} {
		require.NoError(t, term.Add(t.Context(), name, 1))
		require.NoError(t, term.Move(t.Context(), part(name, 0), "w_1"))
	}
	require.NoError(t, term.Delete(t.Context(), "orders"))
	require.Equal(t, map[route.Partition]string{part("payments", 0): "w_1"}, term.State().Pins)
	topics, err := r.session.Children(t.Context(), r.cluster.Property(propertyFolder, pinsFolder), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"payments"}, topics)
}

func TestManyTopicsComeOnlineAndOneMoreDisturbsNone(t *testing.T) {
	topics, partitions, bound := 100, int32(10), limit
	if testkit.Long() {
		topics, bound = 1000, 4*limit // what a machine that also does something else needs; figures are measured in test/bench
	}
	r := newStand(t)
	term := r.start(t)
	for _, name := range []string{"w_1", "w_2", "w_3"} {
		r.join(t, name)
	}
	require.Eventually(t, func() bool {
		s := term.State()
		return s.Workers["w_1"].usable() && s.Workers["w_2"].usable() && s.Workers["w_3"].usable()
	}, limit, 20*time.Millisecond)
	var all []Topic
	for i := range topics {
		all = append(all, Topic{Name: "topic-" + partitionName(int32(i)), Partitions: partitions})
	}
	began := time.Now()
	require.NoError(t, term.adopt(t.Context(), all))
	placed := time.Since(began)
	require.Eventually(t, func() bool { return term.Validate().Online == topics*int(partitions) }, bound, 20*time.Millisecond)
	t.Logf("%d topics: placed in %s, online in %s", topics, placed, time.Since(began))
	before := term.State().Topics
	began = time.Now()
	require.NoError(t, term.Add(t.Context(), "one-more", 3))
	online(t, term, topics*int(partitions)+3)
	t.Logf("one more in %s", time.Since(began))
	for name, topic := range before {
		require.Equal(t, topic.Version, term.State().Topics[name].Version, name)
	}
}
