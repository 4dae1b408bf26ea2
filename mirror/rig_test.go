package mirror

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// rig is one lane whose source, sink, store and clock the test plays.
type rig struct {
	t       *testing.T
	clock   time.Time
	events  *events.Log
	reg     *prometheus.Registry
	mirror  *Mirror
	lane    *Lane
	pool    *slab.Pool
	saved   []offsets.Checkpoint
	saveErr error
	epoch   int32 // of the source's leader right before what feed gives as the end
	sources int   // calls of the wakers
	sinks   int
}

func firstAt(offset route.Offset) offsets.Checkpoint {
	return offsets.Checkpoint{Partition: route.Partition{Topic: "t"}, SourceOffset: offset, ProducerID: 7}
}

func newRig(t *testing.T, at offsets.Checkpoint, window int, plan Plan) *rig {
	t.Helper()
	r := &rig{t: t, clock: time.Unix(1_700_000_000, 0), reg: prometheus.NewPedanticRegistry(), pool: slab.NewPool(slab.NewBudget(1<<24), 1<<20).Poison()}
	log := hclog.NewNullLogger()
	way := route.Route{Source: "a", Target: "b", ID: "1"}
	r.events = events.NewLog(way, "w", 100, log, r.reg)
	cfg := DefaultConfig()
	cfg.AckWindow = window
	r.mirror = New(cfg, Deps{
		Saver: r, Events: r.events, Pool: r.pool, Log: log, Registerer: r.reg, Route: way.String(), Worker: "w1",
		Now: func() time.Time { return r.clock }, Jitter: func(most time.Duration) time.Duration { return most / 2 },
	})
	plan.Source, plan.Target = at.Partition, route.Partition{Topic: "u"}
	r.lane = r.mirror.Add(plan, at, Wakers{Source: func() { r.sources++ }, Sink: func() { r.sinks++ }})
	t.Cleanup(func() {
		r.mirror.Close(r.lane)
		r.mirror.Remove(r.lane)
		require.Zero(t, r.pool.Budget().Used(), "memory was not given back")
	})
	return r
}

// Save takes what the lane commits.
func (r *rig) Save(ctx context.Context, cs []offsets.Checkpoint) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.saveErr == nil {
		r.saved = append(r.saved, cs...)
	}
	return r.saveErr
}

func (r *rig) after(d time.Duration) { r.clock = r.clock.Add(d) }

// feed appends batches and handles them; next is the position behind them.
func (r *rig) feed(next route.Offset, ms ...made) {
	r.t.Helper()
	_, generation, _ := r.lane.Want()
	r.feedTo(generation, next, ms...)
}

func (r *rig) feedTo(generation uint32, next route.Offset, ms ...made) {
	size := 0
	for _, m := range ms {
		size += len(m.bytes())
	}
	s := r.pool.Get(size, 0)
	rest := s.Bytes()
	var batches []batch.Batch
	for _, m := range ms {
		n := copy(rest, m.bytes())
		batches = append(batches, batch.Batch(rest[:n:n]))
		rest = rest[n:]
	}
	r.lane.Append(generation, s, batches, route.Position{Offset: next, LeaderEpoch: r.epoch}, route.Extent{Start: 0, LastStable: next, End: next})
	s.Release()
	r.handle()
}

func (r *rig) handle() {
	st := r.lane.stream
	for len(st.pending) > 0 {
		lanes := st.pending
		st.pending = nil
		for _, l := range lanes {
			l.handle(&st.hand)
		}
	}
}

// hint answers the lane's question.
func (r *rig) hint(h offsets.Hint) {
	r.t.Helper()
	require.Equal(r.t, -1, r.lane.Next(), "the lane does not want to ask")
	q, due := r.lane.Inquiry()
	if q.Question == offsets.NoQuestion {
		require.True(r.t, due.After(r.clock))
		r.clock = due
		q, _ = r.lane.Inquiry()
	}
	require.NotEqual(r.t, offsets.NoQuestion, q.Question)
	r.lane.Hint(h, nil)
}

// fresh is what a target says that never saw us.
var fresh = offsets.Hint{First: -1, Timestamp: -1}

func stands(last int32) offsets.Hint {
	return offsets.Hint{Known: true, Last: last, First: -1, Timestamp: -1, End: 1000}
}

// shows is what a target's log says whose last batch of ours begins at sequence `last` and holds the record with a number; 0 = a cleaner took it.
func shows(last int32, number int) offsets.Hint {
	h := stands(last)
	h.Read, h.First, h.Timestamp = true, last, 1000
	if number > 0 {
		h.LastRecord = markOf(number)
	}
	return h
}

// marked gives the last record another timestamp.
func marked(h offsets.Hint, timestamp int64) offsets.Hint {
	h.LastRecord.Timestamp = timestamp
	return h
}

func stamped(h offsets.Hint, timestamp int64) offsets.Hint {
	h.Timestamp = timestamp
	return h
}

// take takes one batch and says what it holds.
func (r *rig) take(all bool, seq int32, numbers ...int) batch.Batch {
	r.t.Helper()
	require.Positive(r.t, r.lane.Next(), "nothing to take")
	b, withAll := r.lane.Take()
	require.Equal(r.t, numbers, numbersOf(r.t, b))
	require.Equal(r.t, all, withAll, "acks=all")
	require.Equal(r.t, seq, b.BaseSequence())
	require.Equal(r.t, int64(7), b.ProducerID())
	return b
}

func (r *rig) ok(all bool, base route.Offset) { r.lane.Answer(all, base, nil) }

func (r *rig) fail(class route.FaultClass) { r.lane.Answer(true, route.NoOffset, fault(class, "CODE")) }

func (r *rig) commit() offsets.Checkpoint {
	r.t.Helper()
	require.NoError(r.t, r.mirror.Commit(r.t.Context()))
	if len(r.saved) == 0 {
		return offsets.Checkpoint{SourceOffset: route.NoOffset}
	}
	return r.saved[len(r.saved)-1]
}

// renew plays the connector for a lane whose source has deleted what it has not read: a new epoch begins behind that.
func (r *rig) renew(from, to route.Offset) {
	r.t.Helper()
	a := r.stale(Gone)
	require.Equal(r.t, []route.Offset{from, to}, []route.Offset{a.At, a.To})
	require.Zero(r.t, r.lane.Next(), "sends behind what is gone")
	at, plan, wake := r.lane.pos.checkpoint, r.lane.plan, r.lane.wake
	require.Equal(r.t, from, at.SourceOffset)
	r.mirror.Close(r.lane)
	r.mirror.Remove(r.lane)
	plan.Left = a
	at.SourceOffset, at.TargetOffset, at.LeaderEpoch, at.ProducerEpoch, at.Sequence, at.Opened = to, cmp.Or(a.End, at.TargetOffset), -1, at.ProducerEpoch+1, 0, false
	r.lane = r.mirror.Add(plan, at, wake)
	h := fresh
	h.End = at.TargetOffset
	r.hint(h)
}

func (r *rig) told(kind events.Type) (n int) {
	all := r.events.Since(0)
	for _, e := range all {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// openAt feeds one batch [0 1] and has it certified.
func (r *rig) openAt() {
	r.t.Helper()
	r.hint(fresh)
	r.feed(2, made{base: 0, numbers: []int{0, 1}})
	r.take(true, 0, 0, 1)
	require.Zero(r.t, r.lane.Next(), "sent something else before the opener's answer")
	r.ok(true, 0)
}

var errDisk = errors.New("disk on fire")
