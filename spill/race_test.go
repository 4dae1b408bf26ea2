package spill

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

// TestEverythingAtOnce has one goroutine put, one take, one commit, one sync, one trim and one reconfigure, with memory that is made unreadable
// when it is given back. Everything comes, in order, and all memory is given back.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	const items = 3000
	budget := slab.NewBudget(1 << 30)
	pool := slab.NewPool(budget, 1<<20).Poison()
	alloc := func(n int) ([]byte, Holder) {
		budget.Force(int64(n))
		s := pool.Get(n, int64(n))
		data := s.Bytes()
		return data, s
	}
	cfg := small(t.TempDir())
	cfg.Limits.OverflowTimeout, cfg.SyncInterval = time.Millisecond, time.Millisecond
	s, err := Open(cfg, Deps{Alloc: alloc})
	require.NoError(t, err)
	s.disk.sync = func(*os.File) error { return nil }
	q, err := s.Queue(orders, origin, 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var helpers, ends sync.WaitGroup
	helpers.Go(func() { _ = s.Run(ctx) })
	helpers.Go(func() {
		for ctx.Err() == nil {
			l := cfg.Limits
			l.MemoryCapacity = rand.IntN(10)
			_ = q.Reconfigure(l)
			_ = q.Trim(q.Stats().Committed)
			_, _ = s.Partitions()
		}
	})
	ends.Go(func() { putAll(t, q, alloc, items) })
	ends.Go(func() { takeAll(t, q, items) })
	ends.Wait()
	cancel()
	helpers.Wait()
	require.Equal(t, uint64(items), q.Stats().TakenItems)
	require.NoError(t, s.Close())
	require.Zero(t, budget.Used())
}

func putAll(t *testing.T, q *Queue, alloc func(int) ([]byte, Holder), items int) {
	t.Helper()
	at := route.Offset(0)
	for n := 0; n < items; {
		p := q.Put()
		group := source{}.items(at, min(items-n, 1+rand.IntN(4)))
		for _, i := range group {
			data, hold := alloc(len(i.Data))
			copy(data, i.Data)
			p.Add(Item{First: i.First, Next: i.Next, Data: data, Hold: hold})
		}
		if rand.IntN(10) == 0 {
			p.Rollback()
			continue
		}
		if err := p.Commit(t.Context()); err != nil {
			t.Error(err)
			return
		}
		n += len(group)
		at = group[len(group)-1].Next
	}
}

// takeAll takes in one goroutine and commits in another, as a pipeline does, and rolls back now and then.
func takeAll(t *testing.T, q *Queue, items int) {
	t.Helper()
	for q.Stats().TakenItems < uint64(items) {
		take, err := q.Take()
		if err != nil {
			t.Error(err)
			return
		}
		acks := make(chan int, 64)
		var acking sync.WaitGroup
		acking.Go(func() {
			for n := range acks {
				if err := take.Commit(n); err != nil {
					t.Error(err)
				}
			}
		})
		for range 1 + rand.IntN(200) {
			item, err := take.Next(time.Millisecond)
			if errors.Is(err, ErrEmpty) {
				continue
			}
			if err != nil {
				t.Error(err)
				break
			}
			source{}.same(t, item) // read before it may be given back
			if rand.IntN(3) > 0 && len(acks) < cap(acks) {
				acks <- 1
			}
		}
		close(acks)
		acking.Wait()
		take.Rollback()
	}
}
