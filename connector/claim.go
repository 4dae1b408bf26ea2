package connector

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/internal/backoff"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// claims writes into checkpoints who works on them now. A claim ends nobody else's: that is what sequences are for; it lets people and other
// workers see who wrote last. Many claims go in one read and one write: whoever comes first claims for all that wait.
type claims struct {
	store  offsets.Store
	worker string
	turn   chan struct{} // held by the one who claims for all

	mu      sync.Mutex
	waiting []*claim // guarded by mu
}

type claim struct {
	partition route.Partition
	done      chan struct{} // closed when err is set
	err       error
}

func newClaims(store offsets.Store, worker string) *claims {
	return &claims{store: store, worker: worker, turn: make(chan struct{}, 1)}
}

const (
	claimBase  = 50 * time.Millisecond
	claimLimit = 2 * time.Second
)

// claim returns when the partition is claimed, or has no checkpoint that could be. It waits for a store that is out of reach.
func (c *claims) claim(ctx context.Context, p route.Partition) error {
	mine := &claim{partition: p, done: make(chan struct{})}
	c.put(mine)
	pause := backoff.New(claimBase, claimLimit, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	for {
		select {
		case <-mine.done:
			return mine.err
		case <-ctx.Done():
			return ctx.Err()
		case c.turn <- struct{}{}:
		}
		served := c.serve(ctx)
		if !served { // with the turn held: nobody else would fare better
			_ = pause.Wait(ctx) // the loop sees that it has ended
		}
		<-c.turn
	}
}

func (c *claims) put(all ...*claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, all...)
}

// serve claims all that wait; false if the store is out of reach or ctx has ended, and they wait on.
func (c *claims) serve(ctx context.Context) bool {
	c.mu.Lock()
	all := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	if len(all) == 0 {
		return true
	}
	parts := make([]route.Partition, len(all))
	for i := range all {
		parts[i] = all[i].partition
	}
	err := c.write(ctx, parts)
	if ctx.Err() != nil || errors.Is(err, offsets.ErrUnavailable) {
		c.put(all...)
		return false
	}
	for _, one := range all {
		one.err = err
		close(one.done)
	}
	return true
}

// write claims partitions. What stands in the way of a single one is found again, and told, when it is started.
func (c *claims) write(ctx context.Context, parts []route.Partition) error {
	known, err := c.store.Load(ctx, parts)
	var broken *offsets.StorageError
	if errors.Is(err, offsets.ErrUnavailable) || errors.As(err, &broken) {
		return err
	}
	var mine []offsets.Checkpoint
	for _, at := range known {
		if !at.Foreign && at.Writer != c.worker {
			at.Writer = c.worker
			mine = append(mine, at)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	if err := c.store.Save(ctx, mine); err != nil && !errors.Is(err, offsets.ErrConflict) {
		return err
	}
	return nil
}
