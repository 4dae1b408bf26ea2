package spill

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// source is the log that the tests' items come from: what is at a position follows from the position alone, so that any reader can be judged.
type source struct{}

// item is the one at a position. It stands for one to three positions and has up to 200 bytes.
func (source) item(first route.Offset) Item {
	r := rand.New(rand.NewPCG(uint64(first), 7))
	data := make([]byte, 8+r.IntN(193))
	binary.BigEndian.PutUint64(data, uint64(first))
	for i := 8; i < len(data); i++ {
		data[i] = byte(r.Uint32())
	}
	return Item{First: first, Next: first + 1 + route.Offset(r.IntN(3)), Data: data}
}

// items are n from a position on.
func (s source) items(first route.Offset, n int) []Item {
	items := make([]Item, n)
	for i := range items {
		items[i] = s.item(first)
		first = items[i].Next
	}
	return items
}

// same fails unless an item is the source's.
func (s source) same(t require.TestingT, got Item) {
	want := s.item(got.First)
	require.Equal(t, want.Next, got.Next)
	require.True(t, bytes.Equal(want.Data, got.Data), "item at %d differs", got.First)
}

// rig is a store with one queue.
type rig struct {
	t     testing.TB
	cfg   Config
	store *Store
	queue *Queue

	mu      sync.Mutex
	notices []Notice
	settled []route.Offset
	refuse  error // what Settle answers
	lazy    bool  // nothing is synced: the test kills no machine
}

var orders = route.Partition{Topic: "orders", Partition: 3}

const origin = "cluster-1/AQAAAAAAAAAAAAAAAAAAAA"

// small are limits that tests reach: 4 items in memory, anything on disk, no waiting.
func small(dir string) Config {
	cfg := DefaultConfig()
	cfg.Dir, cfg.MaxBytes, cfg.SegmentBytes = dir, 1<<30, 600
	cfg.Limits.MemoryCapacity, cfg.Limits.OverflowTimeout, cfg.Limits.OverflowDeactivationThreshold = 4, 0, 50
	return cfg
}

func newRig(t testing.TB, cfg Config, from route.Offset) *rig {
	t.Helper()
	r := &rig{t: t, cfg: cfg}
	r.open(from)
	t.Cleanup(func() { require.NoError(t, r.store.Close()) })
	return r
}

func (r *rig) open(from route.Offset) {
	r.t.Helper()
	var err error
	r.store, err = Open(r.cfg, Deps{Route: "r", Notify: r.notify, Settle: r.settle})
	require.NoError(r.t, err)
	if r.lazy {
		r.store.disk.sync = func(*os.File) error { return nil }
	}
	r.queue, err = r.store.Queue(orders, origin, from)
	require.NoError(r.t, err)
}

func (r *rig) notify(n Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, n)
}

func (r *rig) settle(_ context.Context, _ route.Partition, at route.Offset) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse == nil {
		r.settled = append(r.settled, at)
	}
	return r.refuse
}

// kinds are those of the notices so far.
func (r *rig) kinds() []Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []Kind
	for _, n := range r.notices {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

// crash leaves everything as a kill -9 would: what was written stays, nothing more is.
func (r *rig) crash() {
	r.t.Helper()
	for _, q := range r.store.all() {
		q.mu.Lock()
		q.closed = true
		q.mu.Unlock()
		if q.take != nil {
			q.take.Rollback()
		}
		if err := q.log.close(); !errors.Is(err, os.ErrClosed) { // a test may have closed it under the log
			require.NoError(r.t, err)
		}
		r.store.leave(q)
	}
	require.NoError(r.t, r.store.Close())
}

// put commits one transaction.
func (r *rig) put(items ...Item) error {
	p := r.queue.Put()
	for _, i := range items {
		p.Add(i)
	}
	err := p.Commit(r.t.Context())
	if err != nil {
		p.Rollback()
	}
	return err
}

// fill puts n items, each in a transaction of its own, and returns the position after them.
func (r *rig) fill(first route.Offset, n int) route.Offset {
	r.t.Helper()
	for _, i := range (source{}).items(first, n) {
		require.NoError(r.t, r.put(i))
		first = i.Next
	}
	return first
}

// take takes and commits what there is, checks it, and returns the damage between and the position after it.
func (r *rig) take() (lost []Corruption, next route.Offset) {
	r.t.Helper()
	take, err := r.queue.Take()
	require.NoError(r.t, err)
	next = r.queue.Stats().Committed
	for {
		item, err := take.Next(0)
		var c *Corruption
		switch {
		case errors.As(err, &c):
			require.Equal(r.t, next, c.First)
			require.Greater(r.t, c.Next, c.First)
			lost = append(lost, *c)
			next = c.Next
		case errors.Is(err, ErrEmpty):
			require.NoError(r.t, take.End())
			return lost, next
		default:
			require.NoError(r.t, err)
			require.Equal(r.t, next, item.First)
			source{}.same(r.t, item)
			next = item.Next
		}
	}
}

const forever = time.Hour
