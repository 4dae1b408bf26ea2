package spool

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/spill"
)

const (
	perBatch   = 3 // offsets
	batchBytes = 1000
)

// made is the source's batch at an offset, which begins one.
func made(at route.Offset) batch.Batch {
	b := make([]byte, batchBytes)
	binary.BigEndian.PutUint64(b, uint64(at))
	binary.BigEndian.PutUint32(b[8:], batchBytes-12)
	binary.BigEndian.PutUint32(b[12:], uint32(at/30)) // leader epoch
	b[16] = 2
	binary.BigEndian.PutUint32(b[23:], perBatch-1)
	binary.BigEndian.PutUint32(b[57:], perBatch)
	for i := batch.HeaderSize; i < len(b); i++ {
		b[i] = byte(int(at) * i >> 2)
	}
	return b
}

// fakeLane takes batches for a target that the test plays.
type fakeLane struct {
	t    *testing.T
	wake func()

	mu         sync.Mutex
	at         route.Position
	generation uint32
	room       int32 // 0: the target takes nothing
	acked      route.Position
	stored     route.Offset
	stalled    time.Time
	charged    int64
	undue      bool                  // a limit lets nothing more be read
	got        map[route.Offset]bool // what was given, by the offset that it begins at
	faults     []*route.Fault
}

func (l *fakeLane) Want() (at route.Position, generation uint32, maxBytes int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at, l.generation, l.room
}

func (l *fakeLane) Append(generation uint32, _ *slab.Slab, batches []batch.Batch, next route.Position, _ route.Extent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != l.generation {
		return
	}
	for _, b := range batches {
		if b.NextOffset() <= l.at.Offset {
			continue
		}
		if b.BaseOffset() > l.at.Offset || string(b) != string(made(b.BaseOffset())) {
			l.t.Errorf("at %d was given %d to %d, or something else in it", l.at.Offset, b.BaseOffset(), b.LastOffset())
		}
		l.got[b.BaseOffset()] = true
		l.charged += int64(len(b))
		l.at = route.Position{Offset: b.NextOffset(), LeaderEpoch: b.LeaderEpoch()}
	}
	if next.Offset > l.at.Offset {
		l.at = next
	}
}

func (*fakeLane) Extent(route.Extent) {}

func (l *fakeLane) Fail(generation uint32, f *route.Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != l.generation {
		return
	}
	l.faults = append(l.faults, f)
	l.at = route.Position{Offset: f.Extent.Start, LeaderEpoch: -1} // as a lane does that goes on behind a gap
	l.acked, l.stored = l.at, l.at.Offset
	l.generation++
}

func (l *fakeLane) Flow() mirror.Flow {
	l.mu.Lock()
	defer l.mu.Unlock()
	return mirror.Flow{Acked: l.acked, Stored: l.stored, Stalled: l.stalled, Free: 100}
}

func (l *fakeLane) Settle(_ context.Context, at route.Offset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stored = max(l.stored, at)
	return nil
}

func (l *fakeLane) Charge(_, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.charged += bytes
}

func (l *fakeLane) Due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.undue
}

// limit has a limit let nothing more be read, or something again.
func (l *fakeLane) limit(undue bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undue = undue
}

// away has the target take nothing; what the lane had and was not acknowledged is gone.
func (l *fakeLane) away() {
	l.mu.Lock()
	l.room, l.at, l.stalled = 0, l.acked, time.Now().Add(-time.Hour)
	l.generation++
	l.mu.Unlock()
	l.wake()
}

func (l *fakeLane) back() {
	l.mu.Lock()
	l.room, l.stalled = 10*batchBytes, time.Time{}
	l.mu.Unlock()
	l.wake()
}

// ack acknowledges all that was given, and stores that.
func (l *fakeLane) ack() {
	l.mu.Lock()
	l.acked, l.stored = l.at, l.at.Offset
	l.mu.Unlock()
	l.wake()
}

func (l *fakeLane) where() route.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at.Offset
}

// rig is a spool with one line between a source and a lane that the test plays.
type rig struct {
	t      *testing.T
	dir    string
	change func(*Config)
	events *events.Log
	pool   *slab.Pool
	spool  *Spool
	line   *Line
	lane   *fakeLane
	start  route.Offset // of the source's log
	end    route.Offset
	read   map[route.Offset]int // how often the source gave each batch
	stop   func()
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), change: change, read: map[route.Offset]int{}}
	r.lane = &fakeLane{t: t, got: map[route.Offset]bool{}, at: route.Position{LeaderEpoch: -1}, acked: route.Position{LeaderEpoch: -1}}
	r.events = events.NewLog(route.Route{Source: "a", Target: "b", ID: "1"}, "w", 100, hclog.NewNullLogger(), prometheus.NewRegistry())
	r.open("log")
	t.Cleanup(func() { r.stop() })
	return r
}

var partition = route.Partition{Topic: "orders", Partition: 3}

// open begins anew on what is in the folder, as a process does that was started again.
func (r *rig) open(origin string) {
	r.t.Helper()
	cfg := Config{Spill: spill.DefaultConfig(), Retry: 10 * time.Millisecond}
	cfg.Spill.Dir, cfg.Spill.MaxBytes, cfg.Spill.SegmentBytes = r.dir, 1<<30, 20*batchBytes
	cfg.Spill.Limits.OverflowTimeout = time.Millisecond
	if r.change != nil {
		r.change(&cfg)
	}
	r.pool = slab.NewPool(slab.NewBudget(1<<24), 0).Poison()
	reg := prometheus.NewPedanticRegistry()
	var err error
	r.spool, err = Open(cfg, Deps{Events: r.events, Pool: r.pool, Log: hclog.NewNullLogger(), Registerer: reg, Route: "r"})
	require.NoError(r.t, err)
	r.spool.every = 2 * time.Millisecond
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.spool.Run(ctx) }() // ended and waited for by stop
	r.line, err = r.spool.Line(partition, origin, r.lane, func() {})
	require.NoError(r.t, err)
	r.lane.wake = r.line.Wake
	r.lane.mu.Lock()
	r.lane.at = r.lane.acked
	r.lane.generation++
	r.lane.mu.Unlock()
	pool := r.pool
	r.stop = func() {
		r.stop = func() {}
		cancel()
		require.NoError(r.t, <-done)
		require.NoError(r.t, r.spool.Close())
		require.Zero(r.t, pool.Budget().Used(), "memory was not given back")
	}
}

// join starts the lane where it stands.
func (r *rig) join() {
	r.line.Open(r.lane.Flow().Acked)
	r.line.Join(r.lane)
}

// fetch answers the line once, as a fetcher does. It says whether the line wanted something.
func (r *rig) fetch() bool {
	at, generation, room := r.line.Want()
	x := route.Extent{Start: r.start, LastStable: r.end, End: r.end}
	switch {
	case room == 0:
		return false
	case at.Offset < r.start:
		r.line.Fail(generation, &route.Fault{Class: route.SourceChanged, Code: mirror.CodeOutOfRange, Extent: x})
		return true
	case at.Offset >= r.end:
		r.line.Extent(x)
		return true
	}
	first := at.Offset / perBatch * perBatch
	n := min(5, int(r.end-first)/perBatch)
	s := r.pool.Get(n*batchBytes, 0)
	var batches []batch.Batch
	for i := range n {
		offset := first + route.Offset(i*perBatch)
		r.read[offset]++
		b := s.Bytes()[i*batchBytes : (i+1)*batchBytes]
		copy(b, made(offset))
		batches = append(batches, b)
	}
	next := batches[n-1].NextOffset()
	r.line.Append(generation, s, batches, route.Position{Offset: next, LeaderEpoch: batches[n-1].LeaderEpoch()}, x)
	s.Release()
	return true
}

// until lets the source answer until something holds.
func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		r.fetch()
		return holds()
	}, 20*time.Second, time.Millisecond, what)
}

// onDisk is where what is written ends.
func (r *rig) onDisk() route.Offset {
	r.line.stepping.Lock()
	defer r.line.stepping.Unlock()
	if r.line.queue == nil {
		return route.NoOffset
	}
	return r.line.queue.Stats().Next
}

// grow appends batches to the source's log.
func (r *rig) grow(batches int) { r.end += route.Offset(batches * perBatch) }

// spilled has the target away until the source's log is on disk and gone from the source.
func (r *rig) spilled(batches int) {
	r.t.Helper()
	r.grow(batches)
	r.lane.away()
	r.until("not on disk", func() bool { return r.onDisk() == r.end })
	r.start = r.end
}

// drained has the target back until all has arrived.
func (r *rig) drained() {
	r.t.Helper()
	r.lane.back()
	r.until("not all arrived", func() bool {
		r.lane.ack()
		return r.lane.where() == r.end
	})
}

// whole fails unless the lane was given everything from an offset on.
func (r *rig) whole(from route.Offset) {
	r.t.Helper()
	for at := from; at < r.end; at += perBatch {
		require.True(r.t, r.lane.got[at], "%d is missing", at)
	}
}

func (r *rig) told(kind events.Type) (all []events.Event) {
	for _, e := range r.events.Since(0) {
		if e.Type == kind {
			all = append(all, e)
		}
	}
	return all
}
