package spill

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/causeway-mirror/causeway/route"
)

// plain is what a queue does, without disk, memory or limits: the positions that it covers.
type plain struct {
	committed, next route.Offset
	taken           []Item
	stored          route.Offset // the checkpoint
}

// TestQueueEqualsAPlainOne does anything in any order, crashes included, and compares what is taken with the source.
func TestQueueEqualsAPlainOne(t *testing.T) {
	t.Parallel()
	above, runs := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		cfg := small(filepath.Join(above, strconv.Itoa(runs)))
		defer func() { require.NoError(t, os.RemoveAll(cfg.Dir)) }()
		cfg.MaxBytes = int64(rapid.SampledFrom([]int{1 << 30, 4000}).Draw(t, "max_bytes"))
		m := &machine{t: t, src: source{}}
		m.rig = &rig{t: noCleanup{t: t}, cfg: cfg, lazy: true}
		m.rig.open(0)
		defer func() { require.NoError(t, m.rig.store.Close()) }()
		t.Repeat(map[string]func(*rapid.T){
			"":            func(*rapid.T) { m.check() },
			"put":         func(t *rapid.T) { m.put(rapid.IntRange(1, 5).Draw(t, "items")) },
			"put more":    func(t *rapid.T) { m.put(rapid.IntRange(1, 5).Draw(t, "items")) },
			"abandon":     func(*rapid.T) { m.abandon() },
			"take":        func(t *rapid.T) { m.take(rapid.IntRange(1, 6).Draw(t, "items")) },
			"commit":      func(t *rapid.T) { m.commit(rapid.Float64Range(0, 1).Draw(t, "share")) },
			"end":         func(*rapid.T) { m.end() },
			"roll back":   func(*rapid.T) { m.rollBack() },
			"checkpoint":  func(*rapid.T) { m.checkpoint() },
			"reconfigure": m.reconfigure,
			"sync":        func(*rapid.T) { require.NoError(m.t, m.rig.queue.log.sync()) },
			"crash":       func(*rapid.T) { m.restart(m.rig.crash) },
			"stop":        func(*rapid.T) { m.restart(func() { require.NoError(m.t, m.rig.store.Close()) }) },
		})
		m.drain()
	})
}

// noCleanup lets a rig be used in a check of rapid.
type noCleanup struct {
	testing.TB
	t *rapid.T
}

func (noCleanup) Helper()                     {}
func (n noCleanup) Errorf(f string, a ...any) { n.t.Errorf(f, a...) }
func (n noCleanup) FailNow()                  { n.t.FailNow() }

type machine struct {
	t    *rapid.T
	rig  *rig
	src  source
	want plain
	open *Take
}

func (m *machine) put(n int) {
	p := m.rig.queue.Put()
	items := m.src.items(m.want.next, n)
	for _, i := range items {
		p.Add(i)
	}
	if err := p.Commit(m.t.Context()); err != nil {
		if ok := isRefusal(err); !ok {
			require.NoError(m.t, err)
		}
		p.Rollback()
		return
	}
	m.want.next = items[n-1].Next
}

func (m *machine) abandon() {
	p := m.rig.queue.Put()
	p.Add(m.src.item(m.want.next))
	p.Rollback()
}

func (m *machine) take(n int) {
	var err error
	if m.open == nil {
		m.open, err = m.rig.queue.Take()
		require.NoError(m.t, err)
	}
	for range n {
		at := m.want.committed
		if k := len(m.want.taken); k > 0 {
			at = m.want.taken[k-1].Next
		}
		item, err := m.open.Next(0)
		if at == m.want.next {
			require.ErrorIs(m.t, err, ErrEmpty)
			return
		}
		require.NoError(m.t, err)
		require.LessOrEqual(m.t, item.First, at)
		require.Greater(m.t, item.Next, at)
		m.src.same(m.t, item)
		m.want.taken = append(m.want.taken, item)
	}
}

func (m *machine) commit(share float64) {
	if m.open == nil {
		return
	}
	n := int(share * float64(len(m.want.taken)))
	require.NoError(m.t, m.open.Commit(n))
	if n > 0 {
		m.want.committed = m.want.taken[n-1].Next
		m.want.taken = m.want.taken[n:]
	}
}

func (m *machine) end() {
	if m.open == nil {
		return
	}
	require.NoError(m.t, m.open.End())
	if n := len(m.want.taken); n > 0 {
		m.want.committed = m.want.taken[n-1].Next
	}
	m.open, m.want.taken = nil, nil
}

func (m *machine) rollBack() {
	if m.open != nil {
		m.open.Rollback()
	}
	m.open, m.want.taken = nil, nil
}

// checkpoint stores the committed position, as an owner does from time to time.
func (m *machine) checkpoint() {
	m.want.stored = m.want.committed
	require.NoError(m.t, m.rig.queue.Trim(m.want.stored))
}

func (m *machine) reconfigure(t *rapid.T) {
	l := m.rig.cfg.Limits
	l.MemoryCapacity = rapid.IntRange(0, 8).Draw(t, "memory_capacity")
	l.OverflowCapacity = int64(rapid.SampledFrom([]int{0, 10, 1 << 20}).Draw(t, "overflow_capacity"))
	l.ByteCapacity = int64(rapid.SampledFrom([]int{0, 300, 1000}).Draw(t, "byte_capacity"))
	l.AvgItemSize = int64(rapid.SampledFrom([]int{10, 64, 500}).Draw(t, "avg_item_size"))
	l.OverflowDeactivationThreshold = rapid.IntRange(0, 100).Draw(t, "overflow_deactivation_threshold")
	if l.Validate() != nil {
		return
	}
	require.NoError(t, m.rig.queue.Reconfigure(l))
}

// restart ends the store somehow and opens it at the stored checkpoint. All that was on disk alone or cached must be there; what was in memory
// alone is the source's, which goes on from where the queue ends.
func (m *machine) restart(end func()) {
	settled := m.rig.settled
	if len(settled) > 0 {
		m.want.stored = max(m.want.stored, settled[len(settled)-1])
	}
	before := m.rig.queue.Stats()
	m.rollBack()
	end()
	m.rig.open(m.want.stored)
	after := m.rig.queue.Stats()
	require.NotContains(m.t, m.rig.kinds(), SetAside)
	require.NotContains(m.t, m.rig.kinds(), Corrupt)
	if before.Overflow > 0 {
		require.GreaterOrEqual(m.t, after.Items, before.Overflow)
	}
	if before.Overflow > 0 && before.Fresh == 0 {
		require.Equal(m.t, m.want.next, after.Next)
	}
	m.want.committed, m.want.next = m.want.stored, after.Next
	require.LessOrEqual(m.t, m.want.committed, m.want.next)
}

func (m *machine) check() {
	s := m.rig.queue.Stats()
	require.Equal(m.t, m.want.next, s.Next)
	require.Equal(m.t, m.want.committed, s.Committed)
	require.Equal(m.t, s.Items, s.Fresh+s.Overflow)
	require.GreaterOrEqual(m.t, s.Memory, s.Fresh)
	require.LessOrEqual(m.t, m.rig.store.Bytes(), m.rig.cfg.MaxBytes)
	used, err := folderBytes(m.rig.cfg.Dir)
	require.NoError(m.t, err)
	require.Equal(m.t, used, m.rig.store.Bytes())
	items := 0
	for at := s.Committed; at < s.Next; items++ {
		at = m.src.item(at).Next
	}
	require.Equal(m.t, items, s.Items)
	slots := int64(0)
	for _, i := range m.rig.queue.memory {
		slots += m.rig.queue.limits.slots(len(i.Data))
	}
	require.Equal(m.t, slots, m.rig.queue.slots)
}

func (m *machine) drain() {
	for m.want.committed < m.want.next {
		m.take(100)
		m.end()
	}
	require.Zero(m.t, m.rig.queue.Stats().Items)
}
