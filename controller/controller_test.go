package controller

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

func (r *rig) await(t *testing.T) *Term {
	t.Helper()
	synctest.Wait()
	term, err := r.Term()
	require.NoError(t, err)
	return term
}

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestNobodyLeadsBeforeTheElectionAndAfterTheTerm(t *testing.T) {
	r := newRig(t, DefaultConfig())
	_, err := r.Term()
	require.ErrorIs(t, err, ErrNotLeader)
	t.Run("term", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r = newRig(t, DefaultConfig(), "w1")
			r.lead(t)
		})
	})
	_, err = r.Term()
	require.ErrorIs(t, err, ErrNotLeader)
}

// Somebody had made an ideal state by hand whose name no topic can have: it was listed and assigned, and could not be removed.
func TestATopicWhoseNameIsIllegalCanBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, discovering("orders"), "w1")
		term := r.lead(t)
		r.cluster.edit(func(s *State) {
			s.Topics["or ders"] = Topic{Name: "or ders", Partitions: 1}
			s.Torn = map[string]bool{"torn ü": true}
		})
		require.NoError(t, term.Delete(t.Context(), "or ders"))
		require.NoError(t, term.Delete(t.Context(), "torn ü"))
		require.True(t, isGone(term.Delete(t.Context(), "a b")))
		require.Empty(t, term.Topics())
		require.Empty(t, r.cluster.State().Excluded)
	})
}

func TestTopicsAreAddedGrownAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1", "w2")
		term := r.lead(t)
		ctx := t.Context()
		require.NoError(t, term.Add(ctx, "orders", 3))
		require.NoError(t, term.Add(ctx, "payments", 1))
		require.Equal(t, map[string]int{"w1": 2, "w2": 2}, r.cluster.owners())
		var exists *ExistsError
		require.ErrorAs(t, term.Add(ctx, "orders", 3), &exists)
		var invalid *InvalidError
		require.ErrorAs(t, term.Add(ctx, "neg", -1), &invalid)
		require.ErrorAs(t, term.Add(ctx, "a/b", 1), &invalid)
		require.ErrorAs(t, term.Add(ctx, "..", 1), &invalid)

		before := r.cluster.State().Topics["orders"]
		require.NoError(t, term.Expand(ctx, "orders", 6))
		after := r.cluster.State().Topics["orders"]
		require.EqualValues(t, 6, after.Partitions)
		for p := range before.Partitions {
			require.Equal(t, before.Owner(p), after.Owner(p), "partition %d stays where it is", p)
		}
		require.Len(t, after.Assigned, 6)
		require.NoError(t, term.Expand(ctx, "orders", 2))
		require.Equal(t, after, r.cluster.State().Topics["orders"], "fewer partitions change nothing")
		require.True(t, isGone(term.Expand(ctx, "nosuch", 2)))

		require.Equal(t, []string{"orders", "payments"}, term.Topics())
		require.NoError(t, term.Delete(ctx, "orders"))
		require.True(t, isGone(term.Delete(ctx, "orders")))
		require.Equal(t, []string{"payments"}, term.Topics())
		_, _, err := term.Topic("orders")
		require.True(t, isGone(err))
	})
}

func TestATopicIsAddedWithTheSourcesPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		r.source.counts = map[string]int32{"orders": 4, "other": 9}
		term := r.lead(t)
		r.source.set(func() { r.source.asked = 0 })
		n, err := term.AddFromSource(t.Context(), "orders")
		require.NoError(t, err)
		require.EqualValues(t, 4, n)
		require.Equal(t, 1, r.source.asked, "one topic is asked about, whatever else there is")
		var absent *AbsentError
		_, err = term.AddFromSource(t.Context(), "nosuch")
		require.ErrorAs(t, err, &absent)
	})
}

func TestATopicAddedWithoutWorkersWaitsForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig())
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 3))
		require.Equal(t, map[string]int{"": 3}, r.cluster.owners())
		r.cluster.live("w1", true)
		pass(time.Second)
		require.Equal(t, map[string]int{"w1": 3}, r.cluster.owners())
	})
}

func TestAnotherWritersChangeIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 1))
		r.cluster.rival = func() {
			topic := r.cluster.State().Topics["orders"].Clone()
			topic.Assigned[0] = map[string]string{"w1": Offline}
			require.NoError(t, r.cluster.Write(t.Context(), []Topic{topic}))
		}
		require.NoError(t, term.Expand(t.Context(), "orders", 2))
		require.Equal(t, Assignment{0: {"w1": Offline}, 1: {"w1": Online}}, r.cluster.State().Topics["orders"].Assigned)
	})
}

func TestWhatIsTakenOffStaysOffThroughMovesAndExpansion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		term := r.lead(t)
		ctx := t.Context()
		require.NoError(t, term.Add(ctx, "orders", 2))
		require.NoError(t, term.TakeOff(ctx, part("orders", 0), true))
		var already *AlreadyError
		require.ErrorAs(t, term.TakeOff(ctx, part("orders", 0), true), &already)
		require.Equal(t, Offline, already.State)
		require.ErrorAs(t, term.TakeOff(ctx, part("orders", 1), false), &already)
		require.True(t, isGone(term.TakeOff(ctx, part("orders", 9), true)))
		require.True(t, isGone(term.TakeOff(ctx, part("orders", -1), true)))
		require.True(t, isGone(term.TakeOff(ctx, part("nosuch", 0), true)))

		require.NoError(t, term.Expand(ctx, "orders", 3))
		r.cluster.live("w2", true)
		r.cluster.live("w1", false)
		pass(time.Second)
		require.Equal(t, map[string]int{"w2": 3}, r.cluster.owners())
		require.Equal(t, []route.Partition{part("orders", 0)}, term.Off())
		require.NoError(t, term.TakeOff(ctx, part("orders", 0), false))
		require.Empty(t, term.Off())
	})
}

func TestAJoinMovesWhatBalanceNeedsAndWritesWhatDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "big", 8))
		require.NoError(t, term.Add(t.Context(), "small", 1))
		pass(time.Second)
		writes := r.cluster.written()
		r.cluster.live("w2", true)
		pass(time.Second)
		owners := r.cluster.owners()
		require.InDelta(t, 4.5, owners["w2"], 0.5)
		require.LessOrEqual(t, r.cluster.written()-writes, 2)
		writes = r.cluster.written()
		pass(10 * time.Minute)
		require.Equal(t, writes, r.cluster.written(), "what is balanced is left alone")
	})
}

func TestAWorkerThatComesBackInTimeKeepsItsPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Rebalance.Delay = 2 * time.Minute
		r := newRig(t, cfg, "w1", "w2")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 4))
		pass(5 * time.Minute)
		before := r.cluster.State().Topics["orders"].Assigned
		r.cluster.live("w1", false)
		pass(time.Minute)
		require.Equal(t, before, r.cluster.State().Topics["orders"].Assigned)
		r.cluster.live("w1", true)
		pass(10 * time.Minute)
		require.Equal(t, before, r.cluster.State().Topics["orders"].Assigned)

		r.cluster.live("w1", false)
		pass(119 * time.Second)
		require.Equal(t, before, r.cluster.State().Topics["orders"].Assigned)
		pass(2 * time.Second)
		require.Equal(t, map[string]int{"w2": 4}, r.cluster.owners())
	})
}

func TestARebalanceThatIsAskedForWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Rebalance.Delay = time.Hour
		r := newRig(t, cfg, "w1")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 4))
		r.cluster.live("w2", true)
		pass(time.Second)
		require.Equal(t, map[string]int{"w1": 4}, r.cluster.owners())
		moved, err := term.Rebalance(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, moved)
	})
}

func TestDrainingBeginsAtOnceWhateverTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Rebalance.Delay = time.Hour
		r := newRig(t, cfg, "w1", "w2")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 4))
		require.NoError(t, term.Drain(t.Context(), "w1", true))
		pass(time.Second)
		require.Equal(t, map[string]int{"w2": 4}, r.cluster.owners())
		require.True(t, isGone(term.Drain(t.Context(), "nosuch", true)))
	})
}

func TestNothingMovesWhileBalancingIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1", "w2")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 4))
		require.NoError(t, term.SetBalancing(t.Context(), false))
		r.cluster.live("w1", false)
		pass(time.Hour)
		require.Equal(t, map[string]int{"w1": 2, "w2": 2}, r.cluster.owners())
		require.NoError(t, term.SetBalancing(t.Context(), true))
		pass(time.Second)
		require.Equal(t, map[string]int{"w2": 4}, r.cluster.owners())
	})
}

// The partitions of a worker whose API was late for once counted as average ones: they moved, and moved back.
func TestAWorkerThatDoesNotAnswerMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1", "w2")
		load := &fakeWorkload{rates: map[route.Partition]Rate{}}
		r.Controller.deps.Workload = load
		r.cluster.edit(func(s *State) {
			for i := range 44 {
				name, owner, rate := fmt.Sprintf("light%02d", i), "w2", 10.
				if i < 4 {
					name, owner, rate = fmt.Sprintf("heavy%d", i), "w1", 100
				}
				s.Topics[name] = Topic{Name: name, Partitions: 1, Assigned: Assignment{0: {owner: Online}}}
				load.rates[part(name, 0)] = Rate{Bytes: rate}
			}
		})
		term := r.lead(t)
		pass(5 * time.Minute)
		before := r.cluster.written()
		require.Equal(t, map[string]int{"w1": 4, "w2": 40}, r.cluster.owners(), "balanced")
		load.leave("heavy")
		pass(20 * time.Minute)
		require.Equal(t, before, r.cluster.written(), "one worker is busy")
		load.set(errFake)
		pass(2 * time.Minute)
		require.Equal(t, before, r.cluster.written(), "nobody answers")
		_, known := term.Rate(part("light10", 0))
		require.True(t, known)
		pass(30 * time.Minute)
		_, known = term.Rate(part("light10", 0))
		require.False(t, known, "too old to decide by")
	})
}

// A worker that was killed lived on for its session's timeout, as light as when it was last measured: it was given partitions of the healthy ones.
func TestAWorkerThatWasKilledIsGivenNothingWhileItsSessionLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1", "w2", "w3")
		load, pulse := &fakeWorkload{rates: map[route.Partition]Rate{}}, &fakePulse{}
		r.Controller.deps.Workload, r.Controller.deps.Pulse = load, pulse
		r.cluster.edit(func(s *State) {
			s.Topics["orders"] = Topic{Name: "orders", Partitions: 12, Assigned: Assignment{}}
			for n := range int32(12) {
				s.Topics["orders"].Assigned[n] = map[string]string{fmt.Sprintf("w%d", 1+n%3): Online}
				load.rates[part("orders", n)] = Rate{Bytes: 100}
			}
		})
		term := r.lead(t)
		pass(59 * time.Second)
		before := r.cluster.written()
		load.mu.Lock()
		load.rates = map[route.Partition]Rate{} // by what is known, w2 has next to nothing to do
		for n := range int32(12) {
			load.rates[part("orders", n)] = Rate{Bytes: 100}
			if n%3 == 1 {
				load.rates[part("orders", n)] = Rate{Bytes: 1}
			}
		}
		load.mu.Unlock()
		require.NoError(t, term.weigh(t.Context()))
		pulse.silence("w2")
		pass(5 * time.Minute)
		require.Equal(t, before, r.cluster.written(), "the others are level, and it has what it had")
		_, err := term.Rebalance(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, r.cluster.written(), "also when it is asked for")
		require.NoError(t, term.Add(t.Context(), "clicks", 4))
		for n := range int32(4) {
			require.NotEqual(t, "w2", r.cluster.State().Topics["clicks"].Owner(n))
		}
		var invalid *InvalidError
		require.ErrorAs(t, term.Move(t.Context(), part("clicks", 0), "w2"), &invalid)
		r.cluster.live("w2", false)
		pass(time.Second)
		require.Equal(t, map[string]int{"w1": 8, "w3": 8}, r.cluster.owners(), "now it is lost")

		r.cluster.live("w2", true)
		pulse.silence()
		pass(5 * time.Minute)
		require.NotZero(t, r.cluster.owners()["w2"], "who answers again takes part again")
	})
}

// A look that was asked for while another one was under way was forgotten.
func TestALookThatIsAskedForDuringAnotherIsMade(t *testing.T) {
	c, now := newCrew(0), time.Now()
	c.observe(&State{Workers: map[string]Worker{"w1": {ID: "w1", Live: true}}}, now)
	now = now.Add(settle)
	require.True(t, c.due(now))
	require.False(t, c.due(now))
	c.again(now)
	require.True(t, c.due(now))
	require.Equal(t, time.Hour, c.wait(now))
	c.again(now.Add(time.Minute))
	c.again(now.Add(time.Hour))
	require.Equal(t, time.Minute, c.wait(now), "the earlier one counts")
}

// Resets of many partitions delayed the take-over of a dead worker's.
func TestATakeOverDoesNotWaitForRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1", "w2")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 4))
		hold := make(chan struct{})
		r.cluster.mu.Lock()
		r.cluster.hold = hold
		r.cluster.mu.Unlock()
		r.cluster.edit(func(*State) {
			for p := range int32(4) {
				r.cluster.failing[part("orders", p)] = true
			}
		})
		pass(2 * time.Second)
		r.cluster.live("w2", false)
		pass(2 * time.Second)
		require.Equal(t, map[string]int{"w1": 4}, r.cluster.owners())
		close(hold)
		synctest.Wait()
		require.Equal(t, len(r.cluster.reset()), 2*r.cluster.resetCalls(), "those of one worker and topic together")
	})
}

func TestAStandbyWorkerStepsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Rebalance.Standbys = 1
		r := newRig(t, cfg, "w1", "w2", "w3")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 6))
		pass(time.Second)
		require.Equal(t, map[string]int{"w1": 3, "w2": 3}, r.cluster.owners())
		loads := term.Loads()
		require.False(t, loads[0].Standby)
		require.True(t, loads[2].Standby)
		r.cluster.live("w1", false)
		pass(time.Second)
		require.Equal(t, 6, r.cluster.owners()["w2"]+r.cluster.owners()["w3"])
	})
}

func TestAMovedPartitionStaysWhereItWasMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1", "w2")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 4))
		topic, _, err := term.Topic("orders")
		require.NoError(t, err)
		for p := range topic.Partitions {
			require.NoError(t, term.Move(t.Context(), part("orders", p), "w1"))
		}
		pass(10 * time.Minute)
		require.Equal(t, map[string]int{"w1": 4}, r.cluster.owners())
		require.True(t, isGone(term.Move(t.Context(), part("orders", 0), "nosuch")))
		for p := range topic.Partitions {
			require.NoError(t, term.Move(t.Context(), part("orders", p), ""))
		}
		pass(10 * time.Minute)
		require.Equal(t, map[string]int{"w1": 2, "w2": 2}, r.cluster.owners())
	})
}

// discovering takes topics by the beginnings of their names.
func discovering(prefix string) Config {
	cfg := DefaultConfig()
	cfg.Discovery.Refuse = func(topic string) string {
		switch {
		case strings.HasSuffix(topic, "tmp"):
			return "temporary"
		case !strings.HasPrefix(topic, prefix):
			return "other"
		}
		return ""
	}
	return cfg
}

// A pin kept a partition with a worker that could not mirror it, for good.
func TestAPinnedPartitionIsMirroredWhileItsWorkerCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Rebalance.Delay = time.Minute
		r := newRig(t, cfg, "w1", "w2")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 2))
		require.NoError(t, term.Move(t.Context(), part("orders", 0), "w2"))
		owner := func() string { return r.cluster.State().Topics["orders"].Owner(0) }
		require.NoError(t, term.Drain(t.Context(), "w2", true))
		pass(5 * time.Second)
		require.Equal(t, "w1", owner(), "its worker drains")
		require.NoError(t, term.Drain(t.Context(), "w2", false))
		pass(2 * time.Minute)
		require.Equal(t, "w2", owner(), "it goes back")
		r.cluster.live("w2", false)
		pass(30 * time.Second)
		require.Equal(t, "w2", owner(), "its worker may come back")
		pass(time.Minute)
		require.Equal(t, "w1", owner(), "its worker is gone")
		require.NoError(t, term.Add(t.Context(), "payments", 1))
		require.Equal(t, map[string]int{"w1": 3}, r.cluster.owners())
		r.cluster.live("w2", true)
		pass(2 * time.Minute)
		require.Equal(t, "w2", owner(), "it goes back")
	})
}

func TestTopicsAreDiscoveredByPattern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, discovering("orders"), "w1")
		r.source.counts = map[string]int32{"orders": 2, "orders.tmp": 1, "other": 1}
		term := r.lead(t)
		pass(time.Second)
		require.Equal(t, []string{"orders"}, term.Topics())
		require.Equal(t, map[string]string{"orders.tmp": "temporary", "other": "other"}, term.Excluded())

		r.source.set(func() { r.source.counts = map[string]int32{"orders": 5, "orders.new": 1} })
		pass(time.Minute)
		require.Equal(t, []string{"orders", "orders.new"}, term.Topics())
		topic, _, err := term.Topic("orders")
		require.NoError(t, err)
		require.EqualValues(t, 5, topic.Partitions)

		r.source.set(func() { r.source.counts = map[string]int32{"orders": 1} })
		pass(time.Hour)
		topic, _, err = term.Topic("orders")
		require.NoError(t, err)
		require.EqualValues(t, 5, topic.Partitions, "a topic never shrinks")
		require.Contains(t, term.Topics(), "orders.new", "a source that does not list a topic takes nothing away")
		deleted := 0
		all := r.events.Since(0)
		for _, e := range all {
			if e.Type == events.TopicDeleted {
				deleted++
			}
		}
		require.Equal(t, 1, deleted, "told once")
	})
}

func TestADeletedTopicIsNotDiscoveredAgainUntilItIsAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, discovering(""), "w1")
		r.source.counts = map[string]int32{"orders": 2}
		term := r.lead(t)
		pass(time.Second)
		require.NoError(t, term.Delete(t.Context(), "orders"))
		require.True(t, isGone(term.Delete(t.Context(), "never")))
		pass(time.Hour)
		require.Empty(t, term.Topics())
		require.Equal(t, map[string]bool{"orders": true, "never": true}, r.cluster.State().Excluded)
		require.NoError(t, term.Add(t.Context(), "orders", 2))
		require.Equal(t, map[string]bool{"never": true}, r.cluster.State().Excluded)
	})
}

// Discovery had listed what is not mirrored before an operator deleted one of it, and then added it.
func TestATopicThatIsDeletedWhileItIsDiscoveredDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := discovering("")
		var once sync.Once
		var r *rig
		cfg.Discovery.Refuse = func(topic string) string {
			if topic == "orders" {
				once.Do(func() {
					term, err := r.Term()
					require.NoError(t, err)
					require.True(t, isGone(term.Delete(t.Context(), "orders")))
				})
			}
			return ""
		}
		r = newRig(t, cfg, "w1")
		r.source.counts = map[string]int32{"orders": 2, "clicks": 1}
		term := r.lead(t)
		pass(time.Hour)
		require.Equal(t, []string{"clicks"}, term.Topics())
		require.Equal(t, map[string]string{"orders": "it was deleted from the mirror by an operator"}, term.Excluded())
		require.Zero(t, testutil.ToFloat64(r.metrics.jobErrors.WithLabelValues("discovery")))
	})
}

func TestDiscoveryOnlyTakesWhatTheTargetHasIfSoConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := discovering("")
		cfg.Discovery.NeedTarget = true
		r := newRig(t, cfg, "w1")
		r.source.counts = map[string]int32{"both": 2, "source": 1}
		r.target.counts = map[string]int32{"both": 2, "target": 1}
		term := r.lead(t)
		pass(time.Second)
		require.Equal(t, []string{"both"}, term.Topics())
	})
}

func TestAJobThatFailsRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, discovering(""), "w1")
		r.source.err, r.source.counts = errFake, map[string]int32{"orders": 1}
		term := r.lead(t)
		pass(5 * time.Minute)
		require.Empty(t, term.Topics())
		require.Positive(t, testutil.ToFloat64(r.metrics.jobErrors.WithLabelValues("discovery")))
		r.source.set(func() { r.source.err = nil })
		pass(time.Minute)
		require.Equal(t, []string{"orders"}, term.Topics())
	})
}

func TestLagIsTheDistanceOfPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		p := part("orders", 0)
		r.source.ends[p], r.positions.at[p] = 100, 100
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 2))
		pass(time.Minute)
		lag, ok := term.Lag(p)
		require.True(t, ok)
		require.Zero(t, lag.Records)
		require.Zero(t, lag.Time)
		unknown, ok := term.Lag(part("orders", 1))
		require.True(t, ok)
		require.EqualValues(t, -1, unknown.Records, "what is not known is not 0")

		r.source.set(func() { r.source.ends[p] = 150 })
		pass(10 * time.Second)
		r.source.set(func() { r.source.ends[p] = 170 })
		pass(50 * time.Second)
		lag, _ = term.Lag(p)
		require.EqualValues(t, 70, lag.Records)
		require.InDelta(t, 50, lag.Time.Seconds(), 11)
		r.positions.set(p, 155) // the first 50 arrived: it is behind by what came later only
		pass(10 * time.Second)
		lag, _ = term.Lag(p)
		require.EqualValues(t, 15, lag.Records)
		require.InDelta(t, 50, lag.Time.Seconds(), 11)
		require.InDelta(t, 15, testutil.ToFloat64(r.metrics.lagRecords.WithLabelValues("orders", "0")), 0)

		require.NoError(t, term.Delete(t.Context(), "orders"))
		pass(10 * time.Second)
		require.Zero(t, testutil.CollectAndCount(r.metrics.lagRecords), "series go with their topic")
	})
}

// The figure of a partition stayed as it was for as long as nobody could tell how it was now.
func TestLagThatIsNoLongerKnownIsNotToldAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		lost, down := part("orders", 0), part("orders", 1)
		r.source.ends[lost], r.source.ends[down] = 100, 100
		r.positions.at[lost], r.positions.at[down] = 90, 90
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 2))
		pass(time.Minute)
		require.Equal(t, 2, testutil.CollectAndCount(r.metrics.lagRecords))

		r.source.set(func() { delete(r.source.ends, lost) })
		pass(30 * time.Second)
		require.Equal(t, 2, testutil.CollectAndCount(r.metrics.lagRecords), "one measurement that fails is no news")
		pass(time.Minute)
		require.Equal(t, 1, testutil.CollectAndCount(r.metrics.lagRecords))
		r.source.set(func() { r.source.err = errFake })
		pass(30 * time.Second)
		require.Equal(t, 1, testutil.CollectAndCount(r.metrics.lagRecords))
		stale, _ := term.Lag(down)
		require.EqualValues(t, 10, stale.Records, "nor are a few")
		pass(time.Minute)
		require.Zero(t, testutil.CollectAndCount(r.metrics.lagRecords))
		stale, _ = term.Lag(down)
		require.EqualValues(t, -1, stale.Records, "the API told what was measured last for as long as nothing could be measured")
		require.Zero(t, stale.Time)
		r.source.set(func() { r.source.err = nil })
		pass(time.Minute)
		require.Equal(t, 1, testutil.CollectAndCount(r.metrics.lagRecords), "it is told again")
		again, _ := term.Lag(down)
		require.EqualValues(t, 10, again.Records)
	})
}

// Whoever waited was told that the source was not configured, which it was.
func TestWithoutTheirStorePositionsAreWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		r.Controller.deps.Positions = nil
		_, _, err := r.lead(t).CaughtUp(t.Context(), "", 0)
		require.ErrorIs(t, err, ErrNoPositions)
	})
}

func TestPositionsOfIdlePartitionsAreReadSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		idle, behind := part("orders", 0), part("orders", 1)
		r.source.ends[idle], r.positions.at[idle] = 100, 100
		r.source.ends[behind], r.positions.at[behind] = 100, 50
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 2))
		pass(10 * time.Minute)
		require.InDelta(t, 10, r.positions.readsOf(idle), 2, "once a minute: nothing can have happened but by hand")
		require.InDelta(t, 60, r.positions.readsOf(behind), 2)

		r.source.set(func() { r.source.ends[idle] = 150 })
		r.positions.set(idle, 120)
		pass(11 * time.Second)
		lag, _ := term.Lag(idle)
		require.EqualValues(t, 30, lag.Records, "one that gets records is read at once")
		r.positions.set(idle, 150)
		pass(11 * time.Second)
		lag, _ = term.Lag(idle)
		require.Zero(t, lag.Records)
		r.positions.set(idle, 10) // by hand
		pass(askAgain + 11*time.Second)
		lag, _ = term.Lag(idle)
		require.EqualValues(t, 140, lag.Records)
	})
}

func TestAStuckPartitionTriesOtherWorkersAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Rebalance.Period = 0 // nobody has to look at the balance of load for it
		r := newRig(t, cfg, "w1", "w2")
		p := part("orders", 0)
		r.source.ends[p], r.positions.at[p] = 100, 10
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 1))
		pass(9 * time.Minute)
		require.Empty(t, term.Still())
		pass(2 * time.Minute)
		require.Equal(t, []route.Partition{p}, term.Still())
		moves := func() float64 { return testutil.ToFloat64(r.metrics.moves.WithLabelValues("stuck")) }
		require.Zero(t, moves())
		pass(15 * time.Minute)
		require.InDelta(t, 1, moves(), 0)
		pass(5 * time.Hour)
		require.InDelta(t, 3, moves(), 0)
		r.positions.set(p, 50)
		pass(time.Minute)
		require.Empty(t, term.Still())
		pass(30 * time.Minute)
		require.InDelta(t, 4, moves(), 0, "progress makes the counting begin again")
	})
}

func TestPartitionsInErrorAreResetLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 2))
		r.cluster.edit(func(*State) { r.cluster.failing[part("orders", 1)] = true })
		pass(500 * time.Millisecond)
		require.Empty(t, r.cluster.reset())
		pass(10 * time.Minute)
		require.InDelta(t, 14, len(r.cluster.reset()), 3)
		require.NotContains(t, r.cluster.reset(), part("orders", 0))
		n := len(r.cluster.reset())
		r.cluster.edit(func(*State) { delete(r.cluster.failing, part("orders", 1)) })
		pass(time.Hour)
		require.Len(t, r.cluster.reset(), n)
	})
}

func TestValidationCountsAndComparesWithoutChangingAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, DefaultConfig(), "w1")
		r.source.counts = map[string]int32{"orders": 2}
		term := r.lead(t)
		require.NoError(t, term.Add(t.Context(), "orders", 2))
		require.NoError(t, term.Add(t.Context(), "ghost", 1))
		require.NoError(t, term.TakeOff(t.Context(), part("orders", 0), true))
		r.source.set(func() { r.source.counts["orders"] = 5 })
		writes := r.cluster.written()
		require.Equal(t, Validation{
			Topics: 2, Partitions: 3, Online: 2, Offline: 1, Ideal: map[string]int{"w1": 3}, External: map[string]int{"w1": 3},
		}, term.Validate())
		d, err := term.Compare(t.Context())
		require.NoError(t, err)
		require.Equal(t, Discrepancy{Missing: 1, Mismatched: map[string]int32{"orders": 3}, Partitions: 3}, d)
		require.Equal(t, writes, r.cluster.written())
	})
}

func TestABackupRestoresTheAssignmentInAnEmptyCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, discovering("orders"), "w1", "w2", "w3")
		term := r.lead(t)
		ctx := t.Context()
		require.NoError(t, term.Add(ctx, "orders", 5))
		require.NoError(t, term.Add(ctx, "payments", 2))
		require.NoError(t, term.TakeOff(ctx, part("orders", 3), true))
		require.NoError(t, term.Drain(ctx, "w3", true))
		require.True(t, isGone(term.Delete(ctx, "unwanted")))
		pass(time.Second)
		saved := term.Save()

		other := newRig(t, discovering("orders"), "w1", "w2", "w3")
		restored := other.lead(t)
		require.NoError(t, restored.Add(ctx, "payments", 1)) // something is there already
		require.NoError(t, restored.Restore(ctx, saved))
		pass(time.Second)
		again := restored.Save()
		require.Equal(t, saved.Topics[0], again.Topics[0])
		require.Len(t, again.Topics, 2)
		require.EqualValues(t, 2, again.Topics[1].Partitions)
		require.Equal(t, saved.Draining, again.Draining)
		require.Equal(t, saved.Excluded, again.Excluded)
		saved.Version = 9
		require.Error(t, restored.Restore(ctx, saved))
	})
}

func TestConfigNamesAllFaults(t *testing.T) {
	require.NoError(t, DefaultConfig().Validate())
	cfg := DefaultConfig()
	cfg.ValidateInterval, cfg.Rebalance.Threshold, cfg.Rebalance.Delay, cfg.Backup.Git, cfg.Lag.MinRecords = 0, 0.5, -1, "x", -1
	cfg.Stuck.MaxMoves = -1
	err := cfg.Validate()
	for _, key := range []string{"validate_interval", "rebalance.threshold", "rebalance.delay", "backup.dir", "lag.min_records", "stuck.max_moves"} {
		require.ErrorContains(t, err, key+": ")
	}
}
