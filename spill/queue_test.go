package spill

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

func TestPutWaitsForMemoryAndThenGoesToDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := small(t.TempDir())
		cfg.Limits.OverflowTimeout = 3 * time.Second
		r := newRig(t, cfg, 10)
		next := r.fill(10, 4)
		require.Equal(t, Stats{
			Items: 4, Memory: 4, Fresh: 4, Committed: 10, Next: next, Safe: route.NoOffset, Puts: 4, PutItems: 4, LargestMemory: 4,
		}, r.queue.Stats())
		begun := time.Now()
		next = r.fill(next, 1)
		require.Equal(t, 3*time.Second, time.Since(begun), "it waits for room first")
		s := r.queue.Stats()
		require.True(t, s.Overflowing)
		require.Equal(t, []int{5, 4, 5, 0}, []int{s.Items, s.Memory, s.Overflow, s.Fresh}, "memory is a cache now: all of it is on disk too")
		begun = time.Now()
		next = r.fill(next, 20)
		require.Zero(t, time.Since(begun), "while it overflows nothing waits")
		require.Equal(t, []route.Offset{10}, r.settled, "the checkpoint was stored before the first write")
		require.Equal(t, []Kind{Started}, r.kinds())
		lost, at := r.take()
		require.Empty(t, lost)
		require.Equal(t, next, at)
		require.Equal(t, []Kind{Started, Drained}, r.kinds())
		require.Zero(t, r.queue.Stats().Items)
	})
}

func TestPutGoesOnWhenMemoryIsFreed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := small(t.TempDir())
		cfg.Limits.OverflowTimeout = 3 * time.Second
		r := newRig(t, cfg, 0)
		next := r.fill(0, 4)
		done := make(chan error)
		go func() { done <- r.put(source{}.item(next)) }() // owned by the test, which waits
		time.Sleep(time.Second)
		take, err := r.queue.Take()
		require.NoError(t, err)
		_, err = take.Next(0)
		require.NoError(t, err)
		require.Equal(t, 4, r.queue.Stats().Memory, "taken is not committed")
		require.NoError(t, take.Commit(1))
		require.NoError(t, <-done)
		require.NoError(t, take.End())
		s := r.queue.Stats()
		require.False(t, s.Overflowing)
		require.Equal(t, []int{4, 0}, []int{s.Memory, s.Overflow})
	})
}

func TestNothingGoesToMemoryBehindWhatIsOnDiskAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, small(t.TempDir()), 0)
	next := r.fill(0, 8)
	take, err := r.queue.Take()
	require.NoError(t, err)
	for range 4 {
		_, err := take.Next(0)
		require.NoError(t, err)
	}
	require.NoError(t, take.End())
	s := r.queue.Stats()
	require.Equal(t, []int{4, 0, 4}, []int{s.Items, s.Memory, s.Overflow})
	require.True(t, s.Overflowing, "memory is free, but a kill would lose what is put there and the source may not have it when its turn comes")
	next = r.fill(next, 1)
	require.Equal(t, 5, r.queue.Stats().Overflow)
	_, at := r.take()
	require.Equal(t, next, at)
	require.False(t, r.queue.Stats().Overflowing)
	next = r.fill(next, 1)
	require.Equal(t, 1, r.queue.Stats().Fresh, "drained: memory comes first again")
	_, at = r.take()
	require.Equal(t, next, at)
}

func TestOverflowEndsWhenEnoughMemoryIsFree(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		threshold, taken int
		over             bool
	}{{50, 1, true}, {50, 2, false}, {5, 1, false}, {0, 1, false}, {100, 3, true}, {100, 4, false}} {
		cfg := small(t.TempDir())
		cfg.Limits.OverflowDeactivationThreshold, cfg.Limits.OverflowCapacity = tc.threshold, 4
		r := newRig(t, cfg, 0)
		next := r.fill(0, 4)
		require.ErrorIs(t, r.put(source{}.item(next)), ErrFull, "there is room on disk for what is in memory and no more")
		s := r.queue.Stats()
		require.Equal(t, []int{4, 4, 4, 0}, []int{s.Items, s.Memory, s.Overflow, s.Fresh})
		require.True(t, s.Overflowing)
		take, err := r.queue.Take()
		require.NoError(t, err)
		for range tc.taken {
			_, err := take.Next(0)
			require.NoError(t, err)
		}
		require.NoError(t, take.End())
		require.Equal(t, tc.over, r.queue.Stats().Overflowing, "threshold %d, %d of 4 taken", tc.threshold, tc.taken)
		if !tc.over {
			next = r.fill(next, 1)
			require.Equal(t, 1, r.queue.Stats().Fresh)
		}
		_, at := r.take()
		require.Equal(t, next, at)
	}
}

func TestCapacities(t *testing.T) {
	t.Parallel()
	data := func(first route.Offset, n int) Item {
		return Item{First: first, Next: first + 1, Data: make([]byte, n)}
	}
	for _, tc := range []struct {
		name                   string
		change                 func(*Config)
		sizes                  []int // of items, each put by itself
		memory, overflow, full int   // afterwards; how many were refused
	}{
		{"disk only", func(c *Config) { c.Limits.MemoryCapacity = 0 }, []int{1, 1, 1}, 0, 3, 0},
		{"memory only", func(c *Config) { c.Limits.OverflowCapacity = 0 }, []int{1, 1, 1, 1, 1, 1}, 4, 0, 2},
		{"items on disk", func(c *Config) { c.Limits.OverflowCapacity = 6 }, []int{1, 1, 1, 1, 1, 1, 1, 1}, 4, 6, 2},
		{"bytes, by slots", func(c *Config) { c.Limits.ByteCapacity, c.Limits.AvgItemSize = 500, 100 }, []int{100, 101, 1, 1}, 3, 4, 0},
		{"the buffer is kept free", func(c *Config) {
			c.Limits.ByteCapacity, c.Limits.AvgItemSize, c.Limits.ByteCapacityBufferPercentage = 500, 100, 60
		}, []int{1, 1, 1}, 2, 3, 0},
		{"larger than memory", func(c *Config) { c.Limits.ByteCapacity, c.Limits.AvgItemSize = 500, 100 }, []int{401, 1}, 0, 2, 0},
		{"max_bytes", func(c *Config) { c.MaxBytes = 700 }, []int{100, 100, 100, 100, 100, 100}, 4, 4, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg := small(t.TempDir())
			tc.change(&cfg)
			r := newRig(t, cfg, 0)
			next, full := route.Offset(0), 0
			for _, n := range tc.sizes {
				switch err := r.put(data(next, n)); {
				case errors.Is(err, ErrFull):
					full++
				default:
					require.NoError(t, err)
					next++
				}
			}
			s := r.queue.Stats()
			require.Equal(t, []int{tc.memory, tc.overflow, tc.full}, []int{s.Memory, s.Overflow, full})
			require.LessOrEqual(t, r.store.Bytes(), cfg.MaxBytes)
			take, err := r.queue.Take()
			require.NoError(t, err)
			for i := range next {
				item, err := take.Next(0)
				require.NoError(t, err)
				require.Equal(t, i, item.First)
			}
			require.NoError(t, take.End())
			require.NoError(t, r.queue.Trim(next))
			require.NoError(t, r.put(data(next, 100)), "there is room again")
		})
	}
}

func TestWhatCanNeverFitIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	cfg := small(t.TempDir())
	cfg.Limits.OverflowCapacity, cfg.Limits.OverflowTimeout = 0, forever
	r := newRig(t, cfg, 0)
	require.ErrorIs(t, r.put(source{}.items(0, 5)...), ErrTooLarge)
	require.Zero(t, r.queue.Stats().Items)
}

func TestReconfigureLosesNothing(t *testing.T) {
	t.Parallel()
	cfg := small(t.TempDir())
	r := newRig(t, cfg, 0)
	next := r.fill(0, 4)
	l := cfg.Limits
	l.MemoryCapacity, l.ByteCapacity, l.AvgItemSize = 2, 1000, 10
	require.NoError(t, r.queue.Reconfigure(l))
	require.Equal(t, 4, r.queue.Stats().Memory, "what is held stays")
	next = r.fill(next, 2)
	l.MemoryCapacity, l.ByteCapacity, l.OverflowCapacity = 10, 0, 0
	require.NoError(t, r.queue.Reconfigure(l))
	next = r.fill(next, 6)
	s := r.queue.Stats()
	require.Equal(t, []int{10, 6}, []int{s.Memory, s.Fresh})
	require.ErrorIs(t, r.put(source{}.item(next)), ErrFull)
	l.OverflowCapacity = 100
	require.NoError(t, r.queue.Reconfigure(l))
	next = r.fill(next, 3)
	s = r.queue.Stats()
	require.Equal(t, []int{15, 4, 15, 0}, []int{s.Items, s.Memory, s.Overflow, s.Fresh}, "what lay in memory behind the disk's is written and not cached")
	l.MemoryCapacity = -1
	require.ErrorContains(t, r.queue.Reconfigure(l), `memory_capacity "-1": must not be negative`)
	lost, at := r.take()
	require.Empty(t, lost)
	require.Equal(t, next, at)
}

func TestValidateTellsAllFaults(t *testing.T) {
	t.Parallel()
	require.NoError(t, small("d").Validate())
	err := Config{Limits: Limits{
		MemoryCapacity: 0, ByteCapacity: -1, ByteCapacityBufferPercentage: 100, OverflowTimeout: -1, OverflowDeactivationThreshold: 101,
	}}.Validate()
	for _, want := range []string{
		`dir ""`, `max_bytes "0"`, `segment_bytes "0"`, `sync_interval "0s"`, `byte_capacity "-1": must not be negative`,
		`byte_capacity_buffer_percentage "100": must be at most 99`, `overflow_deactivation_threshold "101": must be at most 100`, `avg_item_size "0"`,
		`overflow_timeout "-1ns"`, `memory_capacity "0": must be at least 1 where overflow_capacity is 0`,
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = Open(Config{}, Deps{})
	require.Error(t, err)
}

func TestRolledBackTakesComeAgainInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, small(t.TempDir()), 0)
	next := r.fill(0, 12)
	for n := range 13 {
		take, err := r.queue.Take()
		require.NoError(t, err)
		_, err = r.queue.Take()
		require.ErrorIs(t, err, ErrBusy)
		for _, want := range (source{}).items(0, n) {
			item, err := take.Next(0)
			require.NoError(t, err)
			require.Equal(t, want, item)
		}
		require.Equal(t, n, take.Taken())
		take.Rollback()
		take.Rollback()
		require.ErrorIs(t, take.Commit(0), ErrEnded)
		_, err = take.Next(0)
		require.ErrorIs(t, err, ErrEnded)
	}
	require.Equal(t, uint64(13), r.queue.Stats().TakeRollbacks)
	_, at := r.take()
	require.Equal(t, next, at)
	require.Equal(t, []uint64{1, 12}, []uint64{r.queue.Stats().Takes, r.queue.Stats().TakenItems})
}

func TestTakeWaitsForAnItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small(t.TempDir()), 0)
		take, err := r.queue.Take()
		require.NoError(t, err)
		begun := time.Now()
		_, err = take.Next(time.Second)
		require.ErrorIs(t, err, ErrEmpty)
		require.Equal(t, time.Second, time.Since(begun))
		done := make(chan error)
		go func() { // owned by the test, which waits
			_, err := take.Next(forever)
			done <- errors.Join(err, take.End())
		}()
		synctest.Wait()
		r.fill(0, 1)
		require.NoError(t, <-done)
		take, err = r.queue.Take()
		require.NoError(t, err)
		go func() { _, err := take.Next(forever); done <- err }() // owned by the test, which waits
		synctest.Wait()
		require.NoError(t, r.queue.Close())
		require.ErrorIs(t, <-done, ErrClosed)
	})
}

func TestCloseEndsAPutThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := small(t.TempDir())
		cfg.Limits.OverflowTimeout = forever
		r := newRig(t, cfg, 0)
		next := r.fill(0, 4)
		done := make(chan error)
		go func() { done <- r.put(source{}.item(next)) }() // owned by the test, which waits
		synctest.Wait()
		require.NoError(t, r.queue.Close())
		require.ErrorIs(t, <-done, ErrClosed)
		require.ErrorIs(t, r.put(source{}.item(next)), ErrClosed)
		_, err := r.queue.Take()
		require.ErrorIs(t, err, ErrClosed)
	})
}

func TestCancelledPutCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	cfg := small(t.TempDir())
	cfg.Limits.OverflowTimeout = forever
	r := newRig(t, cfg, 0)
	next := r.fill(0, 4)
	p := r.queue.Put()
	p.Add(source{}.item(next))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Commit(ctx), context.Canceled)
	_, at := r.take()
	require.Equal(t, next, at)
	require.NoError(t, p.Commit(t.Context()))
	require.ErrorIs(t, p.Commit(t.Context()), ErrEnded)
	p.Rollback()
	require.Zero(t, r.queue.Stats().PutRollbacks)
}

func TestPositionsMustAdjoin(t *testing.T) {
	t.Parallel()
	r := newRig(t, small(t.TempDir()), 5)
	for _, items := range [][]Item{
		{{First: 4, Next: 6}},
		{{First: 6, Next: 7}},
		{{First: 5, Next: 5}},
		{{First: 5, Next: 6}, {First: 7, Next: 8}},
	} {
		require.ErrorIs(t, r.put(items...), ErrNotAdjoining)
	}
	require.NoError(t, r.put())
	require.Equal(t, uint64(4), r.queue.Stats().PutRollbacks)
	require.NoError(t, r.put(Item{First: 5, Next: 9}), "an item may be empty")
}

func TestOverflowWaitsForTheCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t, small(t.TempDir()), 0)
	next := r.fill(0, 4)
	r.refuse = errors.New("the store is out of reach")
	require.ErrorIs(t, r.put(source{}.item(next)), r.refuse)
	require.Zero(t, r.queue.Stats().Overflow)
	r.refuse = nil
	next = r.fill(next, 1)
	_, at := r.take()
	require.Equal(t, next, at)
	require.Equal(t, []route.Offset{0}, r.settled)
	next = r.fill(next, 4) // in memory: the log now has a hole before what comes next
	begins := next
	r.take()
	next = r.fill(next, 5)
	require.Equal(t, []route.Offset{0, begins}, r.settled, "the log begins anew behind the hole")
	first, _ := r.queue.log.extent()
	require.Equal(t, begins, first)
	_, at = r.take()
	require.Equal(t, next, at)
}

func TestTrimRemovesWhatLiesBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t, small(t.TempDir()), 0)
	next := r.fill(0, 40)
	dir := filepath.Join(r.cfg.Dir, "orders-3")
	bases, err := segments(dir)
	require.NoError(t, err)
	require.Greater(t, len(bases), 5)
	require.NoError(t, r.queue.Trim(next))
	left, err := segments(dir)
	require.NoError(t, err)
	require.Equal(t, bases, left, "nothing of it was taken")
	take, err := r.queue.Take()
	require.NoError(t, err)
	for range 20 {
		_, err := take.Next(0)
		require.NoError(t, err)
	}
	require.NoError(t, take.Commit(20))
	require.NoError(t, r.queue.Trim(next))
	left, err = segments(dir)
	require.NoError(t, err)
	require.Less(t, len(left), len(bases))
	require.LessOrEqual(t, left[0], r.queue.Stats().Committed)
	used, err := folderBytes(r.cfg.Dir)
	require.NoError(t, err)
	require.Equal(t, used, r.store.Bytes())
	require.NoError(t, take.End())
	_, at := r.take()
	require.Equal(t, next, at)
	require.NoError(t, r.queue.Trim(next))
	require.Zero(t, r.store.Bytes())
	r.fill(next, 10)
}

func TestRunSyncsByGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small(t.TempDir()), 0)
		synced := 0
		r.store.disk.sync = func(f *os.File) error { synced++; return f.Sync() }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.store.Run(ctx) }() // owned by the test, which waits
		next := r.fill(0, 5)
		require.Equal(t, route.NoOffset, r.queue.Stats().Safe)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, next, r.queue.Stats().Safe)
		before := synced
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, before, synced, "nothing new, nothing to sync")
		next = r.fill(next, 30)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, next, r.queue.Stats().Safe)
		cancel()
		require.NoError(t, <-done)
	})
}

func TestFolderIsOfOneProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, small(t.TempDir()), 0)
	_, err := Open(r.cfg, Deps{})
	require.ErrorIs(t, err, errInUse)
	_, err = r.store.Queue(orders, origin, 0)
	require.ErrorIs(t, err, ErrBusy)
	_, err = r.store.Queue(route.Partition{Topic: "../x", Partition: 1}, origin, 0)
	require.ErrorContains(t, err, "no folder can have this name")
	_, err = r.store.Queue(route.Partition{Topic: "x"}, origin, -1)
	require.ErrorContains(t, err, "must not be negative")
	r.fill(0, 6)
	found, err := r.store.Partitions()
	require.NoError(t, err)
	require.Equal(t, []route.Partition{orders}, found)
	require.NoError(t, r.queue.Discard())
	require.Zero(t, r.store.Bytes())
	found, err = r.store.Partitions()
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestFiguresLeaveWithTheStore(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	s, err := Open(small(t.TempDir()), Deps{Registerer: reg, Route: "r"})
	require.NoError(t, err)
	q, err := s.Queue(orders, origin, 0)
	require.NoError(t, err)
	p := q.Put()
	for _, i := range (source{}).items(0, 6) {
		p.Add(i)
	}
	require.NoError(t, p.Commit(t.Context()))
	faults, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, faults)
	families, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, families, 6)
	require.InDelta(t, 6, testutil.ToFloat64(s.metrics.putItems), 0)
	require.NoError(t, s.Close())
	families, err = reg.Gather()
	require.NoError(t, err)
	require.Empty(t, families)
}

func TestWhatIsDroppedStaysTakenAndIsReadAgain(t *testing.T) {
	t.Parallel()
	cfg := small(t.TempDir())
	cfg.Limits.MemoryCapacity = 0
	r := newRig(t, cfg, 10)
	held, err := r.store.Holds(orders)
	require.NoError(t, err)
	require.False(t, held)
	_, err = r.queue.Last()
	require.ErrorIs(t, err, ErrEmpty)
	next := r.fill(10, 8)
	held, err = r.store.Holds(orders)
	require.NoError(t, err)
	require.True(t, held)
	last, err := r.queue.Last()
	require.NoError(t, err)
	require.Equal(t, next, last.Next)
	source{}.same(t, last)
	take, err := r.queue.Take()
	require.NoError(t, err)
	for range 3 {
		_, err = take.Next(0)
		require.NoError(t, err)
		take.Drop()
	}
	require.Equal(t, 3, take.Taken())
	require.NoError(t, take.Commit(1))
	take.Rollback()
	require.Equal(t, 7, r.queue.Stats().Items)
	lost, at := r.take()
	require.Empty(t, lost)
	require.Equal(t, next, at)
}
