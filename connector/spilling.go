package connector

import (
	"context"
	"fmt"
	"time"

	"github.com/causeway-mirror/causeway/fetcher"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/spool"
	"github.com/causeway-mirror/causeway/wire"
)

// reading is how the source is read: straight into lanes, or past them.
type reading struct {
	*fetcher.Fetchers

	spool *spool.Spool // nil: nothing spills
}

// spillRetry is the time after which a source or a disk that failed a partition that spills is tried again.
const spillRetry = 3 * time.Second

// spills says that something may go to disk.
func (c Config) spills() bool { return c.Spill.MaxBytes > 0 && c.Spill.Limits.OverflowCapacity > 0 }

// laneLimits are the most bytes and batches that a lane holds, which is the memory of its spill.
func (c Config) laneLimits(most int64) (bytes int64, batches int) {
	l := c.Spill.Limits
	bytes, batches = most, l.MemoryCapacity
	if l.ByteCapacity > 0 {
		free := l.ByteCapacity * int64(100-l.ByteCapacityBufferPercentage) / 100
		bytes = max(min(bytes, free), leastLane)
		batches = min(batches, max(1, int(free/l.AvgItemSize))) // a batch takes one slot at least
	}
	return bytes, batches
}

// leastLane is what a lane must hold at least to be given a whole fetch.
const leastLane = 2 << 20

func (c *Connector) openSpool() error {
	if !c.cfg.spills() {
		return nil
	}
	var err error
	c.fetchers.spool, err = spool.Open(spool.Config{Spill: c.cfg.Spill, Retry: spillRetry}, spool.Deps{
		Events: c.deps.Events, Pool: c.pool, Log: c.deps.Log.Named("spool"), Registerer: c.deps.Registerer, Route: c.deps.Route.String(),
	})
	return err
}

func (c *Connector) closeSpool() error {
	if c.fetchers.spool == nil {
		return nil
	}
	return c.fetchers.spool.Close()
}

// layLine makes the line of a partition that starts at a checkpoint of a source cluster. One that it has already is kept if it is of the same log.
func (c *Connector) layLine(p *partition, cluster string, at offsets.Checkpoint) error {
	source, origin := p.source, cluster+"/"+at.SourceTopicID.String()
	line := c.lineOf(p)
	if line != nil && line.Origin() == origin {
		return nil
	}
	c.leaveLine(p)
	line, err := c.fetchers.spool.Line(source, origin, c.mirror.Pace(source), func() { c.fetchers.Wake(source) })
	if err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	c.mu.Lock()
	wanted := c.parts[source] == p
	if wanted {
		p.line = line
	}
	c.mu.Unlock()
	if !wanted { // it has left meanwhile
		return line.Close()
	}
	return nil
}

// layLines makes the lines of the partitions that start.
func (c *Connector) layLines(ctx context.Context, t *pair, at map[route.Partition]offsets.Checkpoint) error {
	if c.fetchers.spool == nil {
		return nil
	}
	r, err := c.deps.Store.Route(ctx)
	if err != nil {
		return storeError("load route", err)
	}
	c.leaveOutIf(t, func(p *partition) error { return c.layLine(p, r.SourceCluster, at[p.source]) })
	return nil
}

func (c *Connector) lineOf(p *partition) *spool.Line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.line
}

// fetched is what the fetcher fetches for: a lane or, where there is one, the line before it, which it joins.
func fetched(line *spool.Line, lane *mirror.Lane) fetcher.Lane {
	if line == nil {
		return lane
	}
	line.Join(lane)
	return line
}

// leaveLine ends a partition's line. What it has on disk stays there.
func (c *Connector) leaveLine(p *partition) {
	c.mu.Lock()
	line := p.line
	p.line = nil
	c.mu.Unlock()
	if line == nil {
		return
	}
	c.fetchers.Remove(p.source)
	if err := line.Close(); err != nil {
		c.deps.Log.Error("spill can't be closed", "topic", p.source.Topic, "partition", p.source.Partition, "err", err)
	}
}

// spillAlone has partitions read on to disk that can't be started because the target does not answer: the source may not keep their records until
// it does. A partition that never ran has nothing to go on from, and waits.
func (c *Connector) spillAlone(ctx context.Context, parts []*partition, source *wire.Metadata) {
	if c.fetchers.spool == nil {
		return
	}
	var due []*partition
	var keys []route.Partition
	c.mu.Lock()
	for _, p := range parts {
		if p.line == nil && time.Since(p.since) >= c.cfg.Spill.Limits.OverflowTimeout && !c.suspended && !p.halted && !c.pausedLocked(p.source) {
			due, keys = append(due, p), append(keys, p.source)
		}
	}
	c.mu.Unlock()
	if len(due) == 0 {
		return
	}
	known, err := c.deps.Store.Load(ctx, keys)
	r, routeErr := c.deps.Store.Route(ctx)
	if err != nil || routeErr != nil || source.ClusterID != r.SourceCluster {
		return // each is told when the partition is started
	}
	for _, p := range due {
		at, ok := known[p.source]
		topic, there := source.Topics[p.source.Topic]
		if !ok || !there || at.Foreign || topic.Err != nil || at.SourceTopicID != topic.ID {
			continue
		}
		if err := c.beginAlone(p, r.SourceCluster, at); err != nil {
			c.deps.Log.Error("partition can't be spilled", "topic", p.source.Topic, "partition", p.source.Partition, "err", err)
		}
	}
}

func (c *Connector) beginAlone(p *partition, cluster string, at offsets.Checkpoint) error {
	if err := c.layLine(p, cluster, at); err != nil {
		return err
	}
	line := c.lineOf(p)
	if line == nil {
		return nil // it has left meanwhile
	}
	if err := line.Begin(route.Position{Offset: at.SourceOffset, LeaderEpoch: at.LeaderEpoch}); err != nil {
		c.leaveLine(p)
		return fmt.Errorf("begin at %d: %w", at.SourceOffset, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts[p.source] == p {
		c.holdLineLocked(p)
		c.fetchers.Add(p.source, at.SourceTopicID, line)
	}
	return nil
}

// tellDisks gives partitions whose disk fails that as their last error.
func (c *Connector) tellDisks(parts []*partition, all []PartitionStatus) {
	if c.fetchers.spool == nil {
		return
	}
	for i, p := range parts {
		line := c.lineOf(p)
		if line == nil {
			continue
		}
		if trouble := line.Trouble(); trouble != "" {
			all[i].LastError = "spill: " + trouble
		}
	}
}

// holdLineLocked keeps a partition that does not run yet from being read on to disk while it stands still for another reason than its target's
// silence. The caller holds mu.
func (c *Connector) holdLineLocked(p *partition) {
	if p.line != nil {
		p.line.Hold(c.suspended || p.halted || c.pausedLocked(p.source))
	}
}
