package fetcher

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

// watchFetches calls see for every fetch that the cluster gets, on the cluster's goroutine.
func watchFetches(kc *kfake.Cluster, see func(*kmsg.FetchRequest)) {
	kc.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if req, ok := r.(*kmsg.FetchRequest); ok {
			see(req)
		}
		return nil, nil, false
	})
}

func TestRewoundLaneGetsItAgain(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 10)
	l := r.add("a", 0, newLane(0))
	for generation := range uint32(5) {
		l.requireValues(t, values(2*int(generation), 10-2*int(generation)))
		l.with(func() {
			l.generation, l.position, l.values = generation+2, route.Offset(2*generation+2), nil
			r.wake("a", 0) // with the lane's lock held
		})
	}
}

func TestRewindTakesACallBackFromTheColdLoop(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cfg := fast()
	cfg.ColdWait, cfg.ColdAfter = 8*time.Second, 20*time.Millisecond
	r := newRig(t, kc, cfg, 64<<20)
	r.produce("a", 0, 0, 10)
	var cold atomic.Bool
	watchFetches(kc, func(req *kmsg.FetchRequest) {
		if req.MaxWaitMillis == 8000 {
			cold.Store(true)
		}
	})
	l := r.add("a", 0, newLane(0))
	l.requireValues(t, values(0, 10))
	eventually(t, cold.Load, "the partition becomes cold")
	l.with(func() { l.generation, l.position, l.values = 2, 0, nil })
	began := time.Now()
	r.wake("a", 0)
	l.requireValues(t, values(0, 10))
	require.Less(t, time.Since(began), 4*time.Second, "it waited for the long poll")
}

func TestColdPartitionWithDataBecomesHot(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cfg := fast()
	cfg.ColdWait, cfg.ColdAfter, cfg.HotIdleWait = 7*time.Second, 50*time.Millisecond, 33*time.Millisecond
	var cold, hot atomic.Int32
	watchFetches(kc, func(req *kmsg.FetchRequest) {
		switch req.MaxWaitMillis {
		case 7000:
			cold.Add(1)
		case 33:
			hot.Add(1)
		}
	})
	r := newRig(t, kc, cfg, 64<<20)
	l := r.add("a", 0, newLane(0))
	for i := range 3 {
		before := hot.Load()
		eventually(t, func() bool { return cold.Load() > int32(i) }, "it becomes cold")
		r.produce("a", 0, i, 1)
		l.requireValues(t, values(0, i+1))
		eventually(t, func() bool { return hot.Load() > before }, "it becomes hot")
	}
}

func TestDamageIsFetchedAgainInANewSession(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cfg := fast()
	var opened, went atomic.Int32 // cold sessions, and fetches in them
	watchFetches(kc, func(req *kmsg.FetchRequest) {
		switch {
		case time.Duration(req.MaxWaitMillis)*time.Millisecond != cfg.ColdWait:
		case req.SessionEpoch == 0:
			opened.Add(1)
		default:
			went.Add(1)
		}
	})
	r := newRig(t, kc, cfg, 64<<20)
	l := r.add("a", 0, newLane(0))
	r.produce("a", 0, 0, 1)
	l.requireValues(t, values(0, 1))
	eventually(t, func() bool { return went.Load() > 2 }, "it is cold alone")
	require.Equal(t, int32(1), opened.Load())
	h := kc.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "a", Err: kerr.CorruptMessage})
	eventually(t, func() bool { return h.Hits() > 0 && opened.Load() == 2 }, "another session")
	r.produce("a", 0, 1, 1)
	l.requireValues(t, values(0, 2))
	require.Nil(t, l.fault())
}

func TestWithheldIsNotFetchedUntilWake(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	r := newRig(t, kc, fast(), 64<<20)
	l := newLane(0)
	l.room = 0
	var fetches atomic.Int32
	watchFetches(kc, func(*kmsg.FetchRequest) { fetches.Add(1) })
	r.add("a", 0, l)
	r.produce("a", 0, 0, 10)
	eventually(t, func() bool { n := 0; l.with(func() { n = l.wants }); return n > 0 }, "the lane is asked")
	require.Never(t, func() bool { return fetches.Load() > 0 }, 300*time.Millisecond, 20*time.Millisecond)
	l.with(func() { l.room = 1 << 20 })
	r.wake("a", 0)
	l.requireValues(t, values(0, 10))
	l.with(func() { l.room = 0 })
	r.wake("a", 0)
	r.produce("a", 0, 10, 10)
	l.with(func() { l.room = 1 << 20 })
	r.wake("a", 0)
	l.requireValues(t, values(0, 20))
}

// One lane that is full half of the time must not wait for the long poll of an idle one (it once cost 97 % of the throughput).
func TestIdlePartitionsDoNotHoldUpAHotOne(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(50, "idle"), kfake.SeedTopics(1, "a"))
	cfg := fast()
	cfg.Fetchers, cfg.ColdWait = 1, 5*time.Second
	r := newRig(t, kc, cfg, 64<<20)
	for p := range int32(50) {
		r.add("idle", p, newLane(0))
	}
	const n = 200
	r.produce("a", 0, 0, n)
	l := newLane(0)
	l.room = 200 // about one batch a fetch
	var toggles atomic.Int32
	l.inAppend = func() {
		toggles.Add(1)
		l.with(func() { l.room = 0 })
		go func() { // ends at once
			l.with(func() { l.room = 200 })
			r.wake("a", 0)
		}()
	}
	r.add("a", 0, l)
	began := time.Now()
	l.requireValues(t, values(0, n))
	require.Greater(t, int(toggles.Load()), n/4, "the lane was never full")
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestColdSessionListsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	const n = 60
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(n, "a"))
	cfg := fast()
	cfg.Fetchers, cfg.ColdWait = 1, 20*time.Millisecond
	var empty, listed atomic.Int32
	watchFetches(kc, func(req *kmsg.FetchRequest) {
		if req.MaxWaitMillis != 20 {
			return
		}
		if len(req.Topics) == 0 {
			empty.Add(1)
			return
		}
		for i := range req.Topics {
			listed.Add(int32(len(req.Topics[i].Partitions)))
		}
	})
	r := newRig(t, kc, cfg, 64<<20)
	for p := range int32(n) {
		r.add("a", p, newLane(0))
	}
	eventually(t, func() bool { return empty.Load() > 5 }, "cold fetches that list nothing")
	wants := func() (sum int) {
		for _, l := range r.lanes {
			l.with(func() { sum += l.wants })
		}
		return sum
	}
	before, rounds := wants(), empty.Load()
	eventually(t, func() bool { return empty.Load() > rounds+10 }, "more of them")
	require.Equal(t, before, wants(), "idle lanes are asked in each round")
	require.Equal(t, int32(n), listed.Load())
	r.produce("a", 7, 0, 5)
	r.lanes[7].requireValues(t, values(0, 5))
}

func TestRemoveEndsCallsEvenDuringOne(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(2), kfake.SeedTopics(8, "a"))
	r := newRig(t, kc, fast(), 64<<20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cl := r.client()
	go func() { // ends with ctx
		for i := 0; ctx.Err() == nil; i++ {
			cl.Produce(ctx, &kgo.Record{Topic: "a", Partition: int32(i % 8), Value: []byte("x")}, nil)
			if i%100 == 0 {
				_ = cl.Flush(ctx)
			}
		}
	}()
	for round := range 15 {
		var lanes []*fakeLane
		for p := range int32(8) {
			lanes = append(lanes, r.add("a", p, newLane(0)))
		}
		if round%3 > 0 {
			eventually(t, func() bool { return lanes[round%8].count() > 0 }, "data flows")
		}
		for p, l := range lanes {
			r.f.Remove(route.Partition{Topic: "a", Partition: int32(p)})
			l.with(func() { l.closed = true })
		}
	}
}

func TestRemoveWaitsForARunningCall(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 1)
	l := newLane(0)
	entered, leave := make(chan struct{}), make(chan struct{})
	l.inAppend = func() { close(entered); <-leave }
	r.add("a", 0, l)
	<-entered
	removed := make(chan struct{})
	go func() { r.f.Remove(route.Partition{Topic: "a"}); close(removed) }()
	select {
	case <-removed:
		t.Fatal("Remove returned while the lane was called")
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	<-removed
}

func TestBudgetIsKept(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "a"))
	const budget = 400 << 10
	r := newRig(t, kc, fast(), budget)
	cl := r.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
	payload := make([]byte, 10<<10)
	for i := range 40 * 6 {
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Partition: int32(i % 6), Value: payload}).FirstErr())
	}
	stop := make(chan struct{})
	most := make(chan int64)
	go func() {
		var m int64
		for {
			m = max(m, r.budget.Used())
			select {
			case <-stop:
				most <- m
				return
			default:
			}
		}
	}()
	for p := range int32(6) {
		l := newLane(0)
		l.keeping = true
		r.add("a", p, l)
	}
	// Lanes keep what they get, so that the budget runs out; then they let go bit by bit.
	eventually(t, func() bool {
		all := 0
		for _, l := range r.lanes {
			var give *slab.Slab
			l.with(func() {
				all += len(l.values)
				if len(l.keep) > 0 {
					give, l.keep = l.keep[0], l.keep[1:]
				}
			})
			if give != nil {
				give.Release()
			}
		}
		return all == 40*6
	}, "everything is fetched")
	close(stop)
	require.LessOrEqual(t, <-most, int64(budget))
}

func TestAbortedTransactionsAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{true, false} {
		t.Run(strconv.FormatBool(committed), func(t *testing.T) {
			t.Parallel()
			kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
			cfg := fast()
			cfg.ReadCommitted = committed
			r := newRig(t, kc, cfg, 64<<20)
			want := writeTransactions(t, kc.ListenAddrs(), "a", committed)
			l := r.add("a", 0, newLane(0))
			l.requireValues(t, want)
			l.with(func() {
				require.Equal(t, l.extent.End, l.position, "the position stays behind the last marker")
			})
		})
	}
}

// writeTransactions interleaves two transactional producers and a plain one. It gives the values that a reader sees.
func writeTransactions(t *testing.T, addrs []string, topic string, committed bool) (want []string) {
	t.Helper()
	plain := newKgo(t, addrs)
	x := newKgo(t, addrs, kgo.TransactionalID(topic+"-x"))
	y := newKgo(t, addrs, kgo.TransactionalID(topic+"-y"))
	n := 0
	write := func(cl *kgo.Client, seen bool) {
		rec := &kgo.Record{Topic: topic, Value: []byte(value(n))}
		require.NoError(t, cl.ProduceSync(t.Context(), rec).FirstErr())
		if seen || !committed {
			want = append(want, value(n))
		}
		n++
	}
	for i := range 6 {
		commitX, commitY := i%2 == 0, i%3 == 0
		require.NoError(t, x.BeginTransaction())
		require.NoError(t, y.BeginTransaction())
		write(x, commitX)
		write(plain, true)
		write(y, commitY)
		write(x, commitX)
		require.NoError(t, x.EndTransaction(t.Context(), kgo.TransactionEndTry(commitX)))
		write(plain, true)
		write(y, commitY)
		require.NoError(t, y.EndTransaction(t.Context(), kgo.TransactionEndTry(commitY)))
	}
	return want
}

func TestCorruptBatchIsFetchedOnceMoreThenTold(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		times int
		told  bool
	}{{"damaged on the way", 1, false}, {"damaged on disk", 1000, true}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			// By name, since a control function does not see the topic's id resolved.
			kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.MaxVersions(kversion.V2_3_0()))
			r := newRig(t, kc, fast(), 64<<20)
			cl := r.client()
			r.produce("a", 0, 0, 3)
			raw := rawBatches(t, cl)
			raw[len(raw)-3] ^= 1 // in the third batch
			left := row.times
			kc.ControlKey(int16(kmsg.Fetch), func(kr kmsg.Request) (kmsg.Response, error, bool) {
				req, ok := kr.(*kmsg.FetchRequest)
				if !ok || left == 0 || len(req.Topics) == 0 || req.Topics[0].Partitions[0].FetchOffset >= 3 {
					return nil, nil, false
				}
				left--
				kc.KeepControl()
				return corruptAnswer(req, raw), nil, true
			})
			l := r.add("a", 0, newLane(0))
			if !row.told {
				l.requireValues(t, values(0, 3))
				require.Nil(t, l.fault())
				return
			}
			eventually(t, func() bool { return l.fault() != nil }, "the lane is told")
			require.Equal(t, route.Corrupt, l.fault().Class)
			require.ErrorContains(t, l.fault(), "offset 2")
			require.Equal(t, values(0, 2), l.values, "what is before it is good")
			require.Equal(t, route.Offset(2), l.position)
		})
	}
}

func rawBatches(t *testing.T, cl *kgo.Client) []byte {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.MinBytes, req.SessionEpoch, req.MaxWaitMillis = 1<<20, 1, -1, 100
	rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	rt.Topic, rp.PartitionMaxBytes = "a", 1<<20
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), cl)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
	return append([]byte(nil), resp.Topics[0].Partitions[0].RecordBatches...)
}

func corruptAnswer(req *kmsg.FetchRequest, raw []byte) *kmsg.FetchResponse {
	resp, _ := req.ResponseKind().(*kmsg.FetchResponse)
	rt, rp := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
	rt.Topic = "a"
	rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = 3, 3, 0
	rp.RecordBatches = raw
	rt.Partitions = append(rt.Partitions, rp)
	resp.Topics = append(resp.Topics, rt)
	return resp
}

func TestCompactionGapIsNoFault(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.MaxVersions(kversion.V2_3_0()))
	r := newRig(t, kc, fast(), 64<<20)
	cl := r.client()
	r.produce("a", 0, 0, 3)
	raw := rawBatches(t, cl)
	third := len(raw) / 3
	gap := append(append([]byte(nil), raw[:third]...), raw[2*third:]...)
	kc.ControlKey(int16(kmsg.Fetch), func(kr kmsg.Request) (kmsg.Response, error, bool) {
		req, ok := kr.(*kmsg.FetchRequest)
		if !ok || len(req.Topics) == 0 {
			return nil, nil, false
		}
		return corruptAnswer(req, gap), nil, true
	})
	l := r.add("a", 0, newLane(0))
	l.requireValues(t, []string{value(0), value(2)})
	require.Equal(t, route.Offset(3), l.position)
}

func TestPreferredReplicaIsUsedAndLeftOnError(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "a"), kfake.MaxVersions(kversion.V2_7_0()))
	require.NoError(t, kc.MoveTopicPartition("a", 0, 0))
	kc.SetFollowers("a", 0, []int32{1})
	var hints atomic.Int32
	kc.ControlKey(int16(kmsg.Fetch), func(kr kmsg.Request) (kmsg.Response, error, bool) {
		req, ok := kr.(*kmsg.FetchRequest)
		if !ok || kc.CurrentNode() != 0 || hints.Load() > 0 || req.Rack != "here" {
			return nil, nil, false
		}
		hints.Add(1)
		resp := corruptAnswer(req, nil)
		resp.Topics[0].Partitions[0].PreferredReadReplica = 1
		return resp, nil, true
	})
	var fromReplica atomic.Int32
	watchFetches(kc, func(req *kmsg.FetchRequest) {
		if kc.CurrentNode() == 1 && len(req.Topics) > 0 {
			fromReplica.Add(1)
		}
	})
	cfg := fast()
	cfg.Rack = "here"
	r := newRig(t, kc, cfg, 64<<20)
	r.produce("a", 0, 0, 5)
	l := r.add("a", 0, newLane(0))
	l.requireValues(t, values(0, 5))
	require.Equal(t, int32(1), hints.Load())
	require.Positive(t, fromReplica.Load(), "the replica was never asked")
	h := kc.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Nodes: []int32{1}, Topic: "a", Err: kerr.OffsetOutOfRange, Count: -1})
	eventually(t, func() bool { return h.Hits() > 0 }, "the replica refuses")
	r.produce("a", 0, 5, 5)
	l.requireValues(t, values(0, 10))
	require.Nil(t, l.fault())
}

func TestDivergedLogIsTold(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	id := kc.TopicInfo("a").TopicID
	var asked atomic.Int32
	asked.Store(-2)
	watchFetches(kc, func(req *kmsg.FetchRequest) {
		for i := range req.Topics {
			if p := req.Topics[i].Partitions[0]; p.FetchOffset == 5 {
				asked.Store(p.LastFetchedEpoch)
			}
		}
	})
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 5)
	l := r.add("a", 0, newLane(0))
	l.requireValues(t, values(0, 5))
	eventually(t, func() bool { return asked.Load() >= 0 }, "the epoch of what was read is sent")
	kc.ControlKey(int16(kmsg.Fetch), func(kr kmsg.Request) (kmsg.Response, error, bool) {
		req, ok := kr.(*kmsg.FetchRequest)
		if !ok {
			return nil, nil, false
		}
		resp := corruptAnswer(req, nil)
		resp.SessionID = req.SessionID
		resp.Topics[0].TopicID = id
		d := kmsg.NewFetchResponseTopicPartitionDivergingEpoch()
		d.Epoch, d.EndOffset = 0, 3
		resp.Topics[0].Partitions[0].DivergingEpoch = d
		return resp, nil, true
	})
	eventually(t, func() bool { return l.fault() != nil }, "the lane is told")
	require.Equal(t, route.SourceChanged, l.fault().Class)
	var e *DivergedError
	require.ErrorAs(t, l.fault(), &e)
	require.Equal(t, route.Offset(3), e.End)

	asked.Store(-2)
	r.f.Wake(route.Partition{Topic: "a"})
	eventually(t, func() bool { return asked.Load() != -2 }, "it is fetched again")
	require.Zero(t, asked.Load(), "without the epoch it would go on in the other log as if nothing were missing")
}
