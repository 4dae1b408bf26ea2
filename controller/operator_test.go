package controller

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

func place(t *testing.T, text string) operator.Place {
	t.Helper()
	p, err := operator.ParsePlace(text)
	require.NoError(t, err)
	return p
}

func TestPauseOfATopicLeavesPartitionsThatArePausedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		term := r.lead(t)
		ctx := t.Context()
		require.NoError(t, term.Add(ctx, "orders", 3))
		require.NoError(t, term.TakeOff(ctx, part("orders", 1), true))
		require.NoError(t, term.PauseTopic(ctx, "orders", true))
		require.NoError(t, term.PauseTopic(ctx, "orders", true))
		require.True(t, r.cluster.State().Paused("orders"))
		require.Equal(t, []route.Partition{part("orders", 1)}, term.Off(), "what is paused as a whole stays where it is")
		require.NoError(t, term.PauseTopic(ctx, "orders", false))
		require.False(t, r.cluster.State().Paused("orders"))
		require.Equal(t, []route.Partition{part("orders", 1)}, term.Off())
		var gone *NotFoundError
		require.ErrorAs(t, term.PauseTopic(ctx, "nowhere", true), &gone)
	})
}

func TestLimitsAreSetAndLifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		term := r.lead(t)
		ctx := t.Context()
		require.NoError(t, term.Add(ctx, "orders", 2))
		slow, slower := operator.Limits{RecordsPerSecond: 100}, operator.Limits{BytesPerSecond: 10.5}
		require.NoError(t, term.LimitTopic(ctx, "orders", slow))
		require.NoError(t, term.LimitPartition(ctx, part("orders", 1), slower))
		require.Equal(t, operator.Topic{
			Settings: operator.Settings{Limits: slow}, Partitions: map[int32]operator.Settings{1: {Limits: slower}},
		}, r.cluster.State().Settings["orders"])
		var invalid *InvalidError
		require.ErrorAs(t, term.LimitTopic(ctx, "orders", operator.Limits{RecordsPerSecond: -1}), &invalid)
		require.Equal(t, "records_per_second", invalid.Key)
		require.ErrorAs(t, term.LimitPartition(ctx, part("orders", 1), operator.Limits{BytesPerSecond: math.NaN()}), &invalid)
		var gone *NotFoundError
		require.ErrorAs(t, term.LimitTopic(ctx, "nowhere", slow), &gone)
		require.ErrorAs(t, term.LimitPartition(ctx, part("orders", 2), slow), &gone)

		// a backup brings them back where there are none
		saved := term.Save()
		require.NoError(t, term.LimitTopic(ctx, "orders", operator.Limits{}))
		require.NoError(t, term.LimitPartition(ctx, part("orders", 1), operator.Limits{}))
		require.True(t, r.cluster.State().Settings["orders"].IsZero())
		require.Nil(t, term.Save().Topics[0].Settings)
		require.NoError(t, term.Restore(ctx, saved))
		require.Equal(t, slow, r.cluster.State().Settings["orders"].Limits)
		require.NoError(t, term.LimitTopic(ctx, "orders", slower))
		require.NoError(t, term.Restore(ctx, saved))
		require.Equal(t, slower, r.cluster.State().Settings["orders"].Limits, "nothing is taken away")
		saved.Topics[0].Settings.Limits.BytesPerSecond = -1
		require.ErrorAs(t, term.Restore(ctx, saved), &invalid)
	})
}

func TestCommandsAreLeftForTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		term := r.lead(t)
		ctx := t.Context()
		require.NoError(t, term.Add(ctx, "orders", 2))
		p := part("orders", 1)
		r.source.set(func() { r.source.ends[p] = 50 })
		for _, text := range []string{"earliest", "latest", "50", "2026-01-02T03:04:05Z"} {
			require.NoError(t, term.Reset(ctx, p, place(t, text)))
			left, _ := r.cluster.ordered(p)
			require.Equal(t, "reset to "+text, left.String())
		}
		var invalid *InvalidError
		require.ErrorAs(t, term.Reset(ctx, p, place(t, "51")), &invalid)
		require.Equal(t, "to: 51: the source ends at 50", invalid.Error())
		require.NoError(t, term.Reset(ctx, part("orders", 0), place(t, "51")), "where the end is not known the worker decides")
		r.source.set(func() { r.source.err = errFake })
		require.ErrorIs(t, term.Reset(ctx, p, place(t, "5")), errFake)
		require.NoError(t, term.Reset(ctx, p, place(t, "earliest")), "the source is not needed for it")

		require.NoError(t, term.Retry(ctx, p))
		left, _ := r.cluster.ordered(p)
		require.Equal(t, "retry", left.String())
		require.Empty(t, r.cluster.reset())
		r.cluster.mu.Lock()
		r.cluster.failing[p] = true
		r.cluster.mu.Unlock()
		r.cluster.edit(func(*State) {})
		require.NoError(t, term.Retry(ctx, p))
		require.Contains(t, r.cluster.reset(), p, "one in ERROR is brought out of it")

		var gone *NotFoundError
		require.ErrorAs(t, term.Reset(ctx, part("orders", 2), place(t, "earliest")), &gone)
		require.ErrorAs(t, term.Retry(ctx, part("nowhere", 0)), &gone)
	})
}

// A partition that came out of ERROR by itself in that moment, or was about to, made the retry fail, and whoever runs it was not told of it.
func TestARetryIsLeftAlsoWhenThePartitionLeavesERROR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		term := newTerm(r.Controller, r.cluster)
		require.NoError(t, term.Add(t.Context(), "orders", 1))
		p := part("orders", 0)
		r.cluster.failing[p], r.cluster.refused = true, true
		r.cluster.edit(func(*State) {})
		require.NoError(t, term.Retry(t.Context(), p))
		left, _ := r.cluster.ordered(p)
		require.Equal(t, "retry", left.String())
	})
}

func TestPausedTopicIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Lag.Interval, cfg.Stuck.After = 10*time.Second, time.Minute
		r := newRig(t, cfg, "w1", "w2")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 1))
		p := part("orders", 0)
		r.positions.set(p, 10)
		r.source.set(func() { r.source.ends[p] = 20 })
		require.NoError(t, term.PauseTopic(t.Context(), "orders", true))
		owner := r.cluster.State().Topics["orders"].Owner(0)
		pass(time.Hour)
		require.Equal(t, owner, r.cluster.State().Topics["orders"].Owner(0))
		require.NoError(t, term.PauseTopic(t.Context(), "orders", false))
		pass(time.Hour)
		require.NotEqual(t, owner, r.cluster.State().Topics["orders"].Owner(0), "the test proves nothing: it does not count as stuck")
	})
}

// TestWishesStandInTheTree: what operators ask is written where workers look for it, by the leader alone, and outlives the term.
func TestWishesStandInTheTree(t *testing.T) {
	r := newStand(t)
	ctx := t.Context()
	term := r.start(t)
	require.NoError(t, term.Add(ctx, "orders", 2))
	require.NoError(t, term.PauseTopic(ctx, "orders", true))
	require.NoError(t, term.LimitPartition(ctx, part("orders", 1), operator.Limits{RecordsPerSecond: 5}))
	record, _, err := r.session.GetRecord(ctx, r.cluster.Property("causeway", "topics", "orders"), nil)
	require.NoError(t, err)
	require.Equal(t, "orders", record.ID)
	require.Equal(t, map[string]string{"paused": "true"}, record.Simple)
	require.Equal(t, map[string]map[string]string{"1": {"records_per_second": "5"}}, record.Map)

	command := func() map[string]string {
		record, _, err := r.session.GetRecord(ctx, r.cluster.Property("causeway", "commands", "orders", "0"), nil)
		require.NoError(t, err)
		return record.Simple
	}
	require.NoError(t, term.Retry(ctx, part("orders", 0)))
	require.Equal(t, map[string]string{"command": "retry"}, command())
	require.NoError(t, term.Reset(ctx, part("orders", 0), place(t, "7")))
	require.NoError(t, term.Retry(ctx, part("orders", 0)))
	require.Equal(t, map[string]string{"command": "reset", "to": "7"}, command(), "a retry does not replace a reset")

	// others leave what they like
	require.NoError(t, r.session.CreateAll(ctx, r.cluster.Property("causeway", "topics", "cut"), []byte("{")))
	h := &helixCluster{term: term.cluster.(*helixCluster).term, cluster: r.cluster, log: term.deps.Log}
	require.NoError(t, h.readSettings(ctx))
	require.Equal(t, term.State().Settings, h.settings, "the next leader reads the same")

	require.NoError(t, term.Delete(ctx, "orders"))
	require.Empty(t, term.State().Settings)
	for _, folder := range []string{"topics", "commands"} {
		there, _, err := r.session.Exists(ctx, r.cluster.Property("causeway", folder, "orders"), nil)
		require.NoError(t, err)
		require.False(t, there, "a topic that is added again begins without them")
	}
	_, err = r.session.Set(ctx, r.cluster.Property("causeway", "epoch"), nil, helix.AnyVersion) // as an election does
	require.NoError(t, err)
	require.ErrorIs(t, term.cluster.Configure(ctx, "late", func(t *operator.Topic) { t.Paused = true }), ErrNotLeader)
	require.ErrorIs(t, term.cluster.Command(ctx, part("late", 0), operator.Command{}), ErrNotLeader)
}
