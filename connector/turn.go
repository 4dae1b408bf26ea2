package connector

import (
	"context"
	"fmt"

	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/route"
)

// Online claims a partition and lets it run here. It waits for the store and for nothing else: what needs a cluster of Kafka is done
// afterwards. Errors: the context's, or that of a store which failed. It may be repeated.
func (c *Connector) Online(ctx context.Context, p route.Partition) error {
	if err := c.claims.claim(ctx, p); err != nil {
		return fmt.Errorf("claim %s: %w", p, err)
	}
	c.Add(p)
	return nil
}

// Offline stops fetching for a partition, waits for what is in flight, commits, and returns when the partition runs here no longer. After the
// shutdown timeout it is given up, with an event of what was left. The only error is the context's; then the partition leaves all the same. It
// may be repeated.
func (c *Connector) Offline(ctx context.Context, p route.Partition) error {
	c.mu.Lock()
	q := c.parts[p]
	if q == nil {
		c.mu.Unlock()
		return nil
	}
	q.leave = true
	switch {
	case q.gone: // it is being drained, or was at the end of Run
	case q.lane != nil:
		q.gone = true
		c.drain(ctx, []*partition{q})
	default: // it does not run yet
		delete(c.parts, p)
		close(q.left)
		if q.line != nil {
			c.drains.Go(func() { c.leaveLine(q) })
		}
	}
	c.mu.Unlock()
	select {
	case <-q.left:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain %s: %w", p, ctx.Err())
	}
}

// Suspend keeps all partitions from fetching and sending: whether they are still this worker's is not known. It waits for nothing.
func (c *Connector) Suspend() { c.hold(true) }

// Resume takes Suspend back; each partition finds out what the target holds before it sends.
func (c *Connector) Resume() { c.hold(false) }

func (c *Connector) hold(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended = on
	for _, p := range c.parts {
		c.holdLineLocked(p)
		switch {
		case p.lane == nil:
		case on:
			p.lane.Suspend()
		default:
			p.lane.Resume()
		}
	}
}

// SetLimits bounds what all partitions together take from the source, from now on.
func (c *Connector) SetLimits(l mirror.Limits) { c.mirror.SetLimits(l) }

// Load is how busy the mirror loops are.
func (c *Connector) Load() mirror.Load { return c.mirror.Load() }
