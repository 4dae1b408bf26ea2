package connector

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// saveStore calls save in place of Save, once it is set.
type saveStore struct {
	offsets.Store

	save atomic.Pointer[func(context.Context) error]
}

func (s *saveStore) Save(ctx context.Context, cs []offsets.Checkpoint) error {
	if save := s.save.Load(); save != nil {
		return (*save)(ctx)
	}
	return s.Store.Save(ctx, cs)
}

// silent saves as a store does that is out of reach: it waits until ctx ends.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", offsets.ErrUnavailable, ctx.Err())
}

// withLanes is an idle connector with some lanes that run, on a store.
func withLanes(t *testing.T, lanes int) (*Connector, *saveStore) {
	t.Helper()
	store := &saveStore{Store: stored(t)}
	c := idleOn(t, store, io.Discard)
	for i := range lanes {
		topic := fmt.Sprint("t", i)
		pair, part := oneOf(t, c, topic, nil)
		require.NoError(t, c.startTopic(t.Context(), pair))
		require.NotNil(t, part.lane)
	}
	return c, store
}

// With the store away each lane took its own time for a commit that can't be, one after the other.
func TestShutdownIsBoundedForAllLanesTogether(t *testing.T) {
	t.Parallel()
	c, store := withLanes(t, 8)
	save := silent
	store.save.Store(&save)
	c.cfg.ShutdownTimeout = 100 * time.Millisecond
	began := time.Now()
	require.NoError(t, c.drainAll(t.Context()))
	require.Less(t, time.Since(began), 2*lateCommit)
}

// A lane that ends with everything else must not be drained once more, on parts that have ended and a store that is closed.
func TestOfflineAtTheEndDrainsNothingTwice(t *testing.T) {
	t.Parallel()
	c, store := withLanes(t, 1)
	p := route.Partition{Topic: "t0"}
	before := c.parts[p]
	gave := make(chan error, 1)
	save := func(context.Context) error { // the partition is on its way out
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		gave <- c.Offline(ctx, p)
		return nil
	}
	store.save.Store(&save)
	require.NoError(t, c.drainAll(t.Context()))
	require.ErrorIs(t, <-gave, context.Canceled, "it has not left yet")
	c.drains.Wait()
	require.Same(t, before, c.parts[p], "drained twice")

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, c.Offline(ctx, p))
	require.Same(t, before, c.parts[p], "drained after the end")
}

// A disk that was full when the last positions were committed let the process end as if all had gone well.
func TestStoreThatFailsAtTheLastCommitIsTold(t *testing.T) {
	t.Parallel()
	c, store := withLanes(t, 2)
	full := func(context.Context) error {
		return &offsets.StorageError{Op: "save checkpoints", Path: "state", Err: syscall.ENOSPC}
	}
	store.save.Store(&full)
	require.ErrorIs(t, c.drainAll(t.Context()), syscall.ENOSPC)
}
