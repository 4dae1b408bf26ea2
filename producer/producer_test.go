package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// accepted gives, by partition, the numbers that a broker took, and fails on what no broker may see.
func (r *rig) accepted() map[route.Partition][]uint64 {
	r.t.Helper()
	numbers := map[route.Partition][]uint64{}
	in := map[string]bool{}
	for _, g := range r.k.received() {
		key := fmt.Sprintf("%d %s", g.request, g.part)
		require.False(r.t, in[key], "two batches of %s in one request", g.part)
		in[key] = true
		numbers[g.part] = append(numbers[g.part], g.number)
	}
	return numbers
}

func TestOrderIsKeptAndRequestsAreShared(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, nil)
	var lanes []*fakeLane
	for i := range int32(40) {
		lanes = append(lanes, r.lane(i, i%2))
	}
	for range 50 { // in small pieces, so that lanes are woken while requests are built
		for _, l := range lanes {
			l.add(4)
		}
	}
	r.finish(lanes...)
	for part, numbers := range r.accepted() {
		require.Len(t, numbers, 200, "of %s", part)
		for i, n := range numbers {
			require.Equal(t, uint64(i), n, "order of %s", part)
		}
	}
	batches := 40 * 200
	require.Less(t, r.k.requests, batches/4, "requests hardly shared")
	for _, l := range lanes {
		require.Empty(t, l.faults)
		require.Equal(t, 1, l.hints)
	}
	require.LessOrEqual(t, r.k.asked, 40)
	problems, err := testutil.GatherAndLint(r.reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// A source topic had grown beyond its target and was copied modulo. The first of two partitions that met in one of the target's had been alone at
// its start and did not look whether the other was in the request: the broker stored one of two batches, and both lanes took its answer.
func TestPartitionThatGetsCompanyLaterStillGoesOnceARequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	a := r.lane(0, 0)
	a.add(2)
	r.finish(a)
	b := r.lane(0, 0)
	for range 100 {
		a.add(2)
		b.add(2)
	}
	r.finish(a, b)
	require.Len(t, r.accepted()[route.Partition{Topic: "t"}], 402)
	for _, l := range []*fakeLane{a, b} {
		l.slot.Detach()
		l.slot.Detach()
	}
	require.Empty(t, r.p.company)
}

// Whatever a request holds, no lane is told what another's batch was answered.
func TestAnswerIsOfOneLaneOnly(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		entries []int64 // base offsets that the broker answers for the one partition
		want    []route.Offset
	}{
		{"one for two", []int64{7}, []route.Offset{route.NoOffset, route.NoOffset}},
		{"one each", []int64{7, 8}, []route.Offset{7, 8}},
		{"none", nil, []route.Offset{route.NoOffset, route.NoOffset}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := New(DefaultConfig(), Deps{Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
			r := p.request(newLink(p, 0))
			var lanes []*told
			for range 2 {
				l := &told{}
				s := p.Slot(route.Partition{Topic: "t"})
				s.lane = l
				lanes = append(lanes, l)
				r.add(s, make([]byte, 100), true)
			}
			resp := &kmsg.ProduceResponse{Topics: []kmsg.ProduceResponseTopic{{Topic: "t"}}}
			for _, base := range row.entries {
				resp.Topics[0].Partitions = append(resp.Topics[0].Partitions, kmsg.ProduceResponseTopicPartition{BaseOffset: base})
			}
			r.answered(resp, nil)
			for i, l := range lanes {
				require.Equal(t, row.want[i], l.base)
				require.Equal(t, row.want[i] < 0, l.fault != nil)
			}
		})
	}
}

// told is a lane that keeps what it is answered.
type told struct {
	fakeLane
	base  route.Offset
	fault *route.Fault
}

func (l *told) Answer(_ bool, base route.Offset, f *route.Fault) { l.base, l.fault = base, f }

func TestOneAcksSettingARequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	hold := make(chan struct{})
	r.k.with(func() {
		r.k.before = func(int32, *kmsg.ProduceRequest) func(route.Partition) error {
			<-hold
			return func(route.Partition) error { return nil }
		}
	})
	all, one := r.lane(0, 0), r.lane(1, 0)
	one.some = true
	all.add(50)
	one.add(50)
	close(hold)
	r.finish(all, one)
	requests := map[int][]received{}
	for _, g := range r.k.received() {
		requests[g.request] = append(requests[g.request], g)
	}
	withAll := 0
	for _, gs := range requests {
		for _, g := range gs {
			if g.part.Partition == 0 {
				require.Equal(t, int16(-1), g.acks)
			}
			if g.part.Partition == 1 && g.acks == -1 {
				withAll++
			}
		}
	}
	require.Equal(t, withAll, one.sentAll)
	require.Equal(t, withAll, one.all)
	require.Equal(t, 50, all.all)
}

func TestInFlightIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, func(c *Config) { c.InFlightBytes, c.MaxRequestBytes = 1000, 100 })
	hold := make(chan struct{})
	r.k.with(func() {
		r.k.before = func(int32, *kmsg.ProduceRequest) func(route.Partition) error {
			<-hold
			return func(route.Partition) error { return nil }
		}
	})
	l := r.lane(0, 0)
	l.add(100)
	eventually(t, func() (full bool) { l.look(func() { full = len(l.flying) == 10 }); return full }, "in flight up to the bound")
	close(hold)
	r.finish(l)
	require.LessOrEqual(t, l.most, 11, "one may be taken while the answer to another is handed back")
}

func TestLostConnectionAnswersEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	n := 0
	r.k.with(func() {
		r.k.cut = func(int32) bool { n++; return n%7 == 0 && n < 100 }
	})
	var lanes []*fakeLane
	for i := range int32(5) {
		l := r.lane(i, 0)
		l.add(300)
		lanes = append(lanes, l)
	}
	r.finish(lanes...)
	faults := 0
	for _, l := range lanes {
		for _, f := range l.faults {
			require.Equal(t, route.Ambiguous, f.Class)
		}
		faults += len(l.faults)
	}
	require.Positive(t, faults)
}

func TestLaneFollowsItsLeader(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, nil)
	l, other := r.lane(0, 0), r.lane(1, 0)
	l.add(10)
	r.finish(l)
	r.k.with(func() { r.k.leaders[l.slot.target] = 1 })
	l.add(10)
	other.add(10)
	r.finish(l, other)
	require.NotEmpty(t, l.faults)
	require.Equal(t, route.Moved, l.faults[0].Class)
	last := received{}
	for _, g := range r.k.received() {
		if g.part == l.slot.target {
			last = g
		}
	}
	require.Equal(t, int32(1), last.broker)
	require.Empty(t, other.faults, "a neighbour was disturbed")
}

func TestFaultConcernsItsPartitionOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	var mu sync.Mutex
	refused := 0
	r.k.with(func() {
		r.k.before = func(int32, *kmsg.ProduceRequest) func(route.Partition) error {
			return func(p route.Partition) error {
				mu.Lock()
				defer mu.Unlock()
				if p.Partition == 0 && refused < 3 {
					refused++
					return kerr.OutOfOrderSequenceNumber
				}
				if p.Partition == 1 {
					return kerr.DuplicateSequenceNumber
				}
				return nil
			}
		}
	})
	bad, dup, good := r.lane(0, 0), r.lane(1, 0), r.lane(2, 0)
	for _, l := range []*fakeLane{bad, dup, good} {
		l.add(20)
	}
	r.finish(bad, dup, good)
	require.NotEmpty(t, bad.faults)
	require.Equal(t, route.Order, bad.faults[0].Class)
	require.Empty(t, dup.faults, "a repeat is a success")
	require.Empty(t, good.faults)
	n, err := testutil.GatherAndCount(r.reg, "causeway_produce_errors_total")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestLatePartitionGoesItsOwnWayAndComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, func(c *Config) { c.Late = 200 * time.Millisecond })
	slow, quick := r.lane(0, 0), r.lane(1, 0)
	slow.add(1)
	quick.add(1)
	r.finish(slow, quick)
	release := make(chan struct{})
	r.k.with(func() {
		r.k.before = func(_ int32, q *kmsg.ProduceRequest) func(route.Partition) error {
			for _, p := range q.Topics[0].Partitions {
				if p.Partition == 0 {
					select {
					case <-release:
					case <-r.k.done:
					}
				}
			}
			return func(route.Partition) error { return nil }
		}
	})
	slow.add(1)
	eventually(t, func() (sent bool) { slow.look(func() { sent = len(slow.flying) == 1 }); return sent }, "the slow one is sent")
	quick.add(50)
	r.finish(quick)
	require.False(t, slow.done())
	eventually(t, func() bool { return slow.slot.private.Load() }, "the late one is moved")
	close(release)
	r.finish(slow)
	for i := range 20 { // it comes back once its answers are prompt
		slow.add(1)
		quick.add(1)
		r.finish(slow, quick)
		if !slow.slot.private.Load() {
			break
		}
		require.Less(t, i, 19)
	}
	conns := map[int32]int32{}
	for _, g := range r.k.received() {
		conns[g.part.Partition] = g.conn
	}
	require.Equal(t, conns[1], conns[0], "not back on the common connection")
}

// The place in the pipe was free and the last answer in time before the lane had it: its next batch could go over the common connection, and be
// answered there first.
func TestPartitionLeavesItsOwnConnectionOnlyWhenItsLaneHasItsAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	l := r.unattached(0, 0)
	l.slot.private.Store(true)
	early := false
	l.answering = func() { early = early || l.slot.link.Load().moved(l.slot) }
	l.slot.Attach(l)
	for i := range 20 {
		l.add(1)
		r.finish(l)
		if !l.slot.private.Load() {
			break
		}
		require.Less(t, i, 19)
	}
	l.look(func() { require.False(t, early) })
}

// A broker that throttles us does not read for a while. What was unanswered then was taken for late: the connection was cut, and partitions went
// over connections of their own, to be throttled there.
func TestThrottledPartitionIsNotLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, func(c *Config) { c.Late, c.MaxRequestBytes = 2*time.Second, 100 })
	lanes := []*fakeLane{r.lane(0, 0), r.lane(1, 0), r.lane(2, 0)}
	for _, l := range lanes {
		l.add(1)
	}
	r.finish(lanes...)
	hold := make(chan struct{})
	r.k.with(func() {
		r.k.throttle = 2500 * time.Millisecond
		r.k.before = func(int32, *kmsg.ProduceRequest) func(route.Partition) error {
			<-hold
			return func(route.Partition) error { return nil }
		}
	})
	for _, l := range lanes { // a request each: the second waits for as long as the throttle after the first, and holds up the third
		l.add(1)
	}
	eventually(t, func() bool {
		sent := 0
		for _, l := range lanes {
			l.look(func() { sent += len(l.flying) })
		}
		return sent == len(lanes)
	}, "all are unanswered")
	close(hold)
	r.finish(lanes...)
	for _, l := range lanes {
		require.False(t, l.slot.private.Load())
		require.Empty(t, l.faults)
	}
}

// Over TLS the end of a connection whose peer does not read takes seconds. It was made with the link's lock held, for which lanes with news wait, and
// whoever waits for those lanes.
func TestLateConnectionIsNotEndedUnderTheLock(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, func(c *Config) { c.Late = 20 * time.Millisecond })
	r.k.with(func() {
		r.k.before = func(int32, *kmsg.ProduceRequest) func(route.Partition) error {
			<-r.k.done
			return func(route.Partition) error { return nil }
		}
	})
	conn, err := r.p.client.Dial(t.Context(), 0)
	require.NoError(t, err)
	l := newLink(r.p, 0) // that nobody watches but the test
	l.setConn(conn)
	for i := range int32(2) {
		s := r.p.Slot(route.Partition{Topic: "t", Partition: i})
		s.lane = &told{}
		q := r.p.request(l)
		q.add(s, make([]byte, 100), true)
		l.seal(q, nil)
		require.NoError(t, conn.Produce(&q.wire, q.done))
	}
	var slots []*Slot
	eventually(t, func() bool { slots, _, _ = l.late(); return len(slots) == 1 }, "the first is late")
	require.NoError(t, conn.Err())
	conn.Close()
}

func TestDetachedLaneIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	l, other := r.lane(0, 0), r.lane(1, 0)
	l.add(5)
	r.finish(l)
	l.slot.Detach()
	l.add(5)
	other.add(5)
	r.finish(other)
	l.look(func() { require.Equal(t, 5, l.sent) })
}

// What one connection had unanswered was told as the broker's, and a broker that had left the cluster was told of for ever.
func TestUnansweredRequestsAreThoseOfAllConnectionsThatThereAre(t *testing.T) {
	t.Parallel()
	p := New(DefaultConfig(), Deps{Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
	common, own := p.link(7), p.privateLink(7, route.Partition{Topic: "t"})
	common.conn, own.conn = &wire.Conn{}, &wire.Conn{}
	common.requests, own.requests = []*request{{}, {}}, []*request{{}}
	require.Equal(t, map[int32]int{7: 3}, p.unanswered())

	r := newRig(t, 1, nil)
	told := func() (brokers []string) {
		families, err := r.reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "causeway_in_flight_requests" {
				for _, m := range f.GetMetric() {
					brokers = append(brokers, m.GetLabel()[0].GetValue())
				}
			}
		}
		return brokers
	}
	l := r.lane(0, 0)
	l.add(2)
	r.finish(l)
	require.Equal(t, []string{"0"}, told())
	r.k.drop(0)
	require.Eventually(t, func() bool { return len(told()) == 0 }, 10*time.Second, time.Millisecond)
}

func TestStopAnswersWhatIsUnanswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.k.with(func() {
		r.k.before = func(int32, *kmsg.ProduceRequest) func(route.Partition) error {
			<-r.k.done
			return func(route.Partition) error { return nil }
		}
	})
	l := r.lane(0, 0)
	l.add(3)
	eventually(t, func() (sent bool) { l.look(func() { sent = len(l.flying) == 3 }); return sent }, "sent")
	r.stop()
	l.look(func() {
		require.Empty(t, l.flying)
		require.Len(t, l.faults, 3)
	})
}

func TestUnreachableClusterIsToldAndAskedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	l := r.lane(0, 0)
	l.add(1)
	r.finish(l)
	_, down := r.p.Reachable()
	require.NoError(t, down)
	r.p.reached(io.ErrUnexpectedEOF)
	r.p.reached(io.EOF)
	since, down := r.p.Reachable()
	require.ErrorIs(t, down, io.EOF)
	require.WithinDuration(t, time.Now(), since, time.Minute)
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err   error
		class route.FaultClass
	}{
		{kerr.NotLeaderForPartition, route.Moved},
		{kerr.UnknownTopicOrPartition, route.Moved},
		{kerr.OutOfOrderSequenceNumber, route.Order},
		{kerr.InvalidProducerEpoch, route.Order},
		{kerr.NotEnoughReplicas, route.Busy},
		{kerr.MessageTooLarge, route.Refused},
		{kerr.TopicAuthorizationFailed, route.Refused},
		{kerr.CorruptMessage, route.Corrupt},
		{kerr.RequestTimedOut, route.Ambiguous},
		{kerr.NotEnoughReplicasAfterAppend, route.Ambiguous},
		{kerr.UnknownServerError, route.Ambiguous},
		{context.DeadlineExceeded, route.Ambiguous},
		{fmt.Errorf("send: %w", &wire.LinkError{Op: "write", Err: io.EOF}), route.Ambiguous},
		{fmt.Errorf("dial: %w", &wire.AuthError{Err: errors.New("no")}), route.Unreachable},
	} {
		t.Run(row.err.Error(), func(t *testing.T) {
			t.Parallel()
			f := classify(row.err)
			require.Equal(t, row.class, f.Class)
			require.NotEmpty(t, f.Code)
			require.Equal(t, route.NoOffset, f.Extent.Start)
		})
	}
	require.Nil(t, classify(nil))
	require.Nil(t, classify(kerr.DuplicateSequenceNumber))
}

func TestWindowFollowsTheWay(t *testing.T) {
	t.Parallel()
	var w window
	now := time.Unix(1000, 0)
	require.EqualValues(t, leastInFlight, w.limit())
	for range 40 { // 100 MB/s at 100 ms
		now = now.Add(50 * time.Millisecond)
		w.answered(now, 5<<20, 100*time.Millisecond, false)
	}
	require.InDelta(t, 20<<20, w.limit(), 6<<20)
	require.Equal(t, 100*time.Millisecond, w.median())
}

// A connection that is busy for long must not take its own queue for the way, which would let the queue grow for as long as it is busy.
func TestQueueIsNotTakenForTheWay(t *testing.T) {
	t.Parallel()
	var w window
	now := time.Unix(1000, 0)
	w.answered(now, 1<<20, time.Millisecond, true)
	for range 300 { // 100 MB/s, each behind 40 ms of others
		now = now.Add(50 * time.Millisecond)
		w.answered(now, 5<<20, 40*time.Millisecond, false)
	}
	require.True(t, w.stale(now), "one must go alone now")
	require.EqualValues(t, leastInFlight, w.limit())
	w.answered(now, 1<<20, 30*time.Millisecond, true)
	require.False(t, w.stale(now))
	require.Equal(t, 30*time.Millisecond, w.minTrip, "the way has become longer")
}

func TestSmallRequestsFillALongWay(t *testing.T) {
	t.Parallel()
	var w window
	now := time.Unix(1000, 0)
	require.Equal(t, leastRequests, w.most())
	for range 400 { // 4,000 a second at 100 ms
		now = now.Add(10 * time.Millisecond)
		for range 40 {
			w.answered(now, 8<<10, 100*time.Millisecond, false)
		}
	}
	require.InDelta(t, 1000, w.most(), 100)
}

// Thousands of small batches in the pipe are few bytes and a long queue, behind which everybody else would wait.
func TestPartitionThatCatchesUpDoesNotFillThePipe(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	stalled := make(chan struct{})
	r.k.with(func() {
		r.k.before = func(int32, *kmsg.ProduceRequest) func(route.Partition) error {
			<-stalled
			return func(route.Partition) error { return nil }
		}
	})
	l := r.lane(0, 0)
	l.add(2000)
	most := func() (n int) {
		l.look(func() { n = l.most })
		return n
	}
	eventually(t, func() bool { return most() >= leastRequests }, "it is not pipelined")
	require.Never(t, func() bool { return most() > leastRequests }, 200*time.Millisecond, 5*time.Millisecond)
	close(stalled)
	r.finish(l)
}

func TestConfigReportsAllFaults(t *testing.T) {
	t.Parallel()
	err := Config{MaxRequestBytes: 0, InFlightBytes: -1, RequestTimeout: 0}.Validate()
	require.ErrorContains(t, err, "max request bytes")
	require.ErrorContains(t, err, "in_flight")
	require.ErrorContains(t, err, "request timeout")
	require.NoError(t, DefaultConfig().Validate())
}
