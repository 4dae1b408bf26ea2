package connector

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// doubtTick is how often lanes are asked whether another owner seems to have begun an epoch.
const doubtTick = 200 * time.Millisecond

// doubtLoop reads checkpoints again that may not be what their lanes go by any more. Where the store names another epoch, or another program
// has set the position, the partition is started anew from there, and where the checkpoint is gone it halts with the start; else the lane goes on
// trying, since what a broker says is a hint.
func (c *Connector) doubtLoop(ctx context.Context) {
	tick := time.NewTicker(doubtTick)
	defer tick.Stop()
	doubted := map[route.Partition]offsets.Checkpoint{} // what their lanes go by
	told := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		c.doubted(doubted)
		if len(doubted) == 0 {
			continue
		}
		known, err := c.deps.Store.Load(ctx, slices.Collect(maps.Keys(doubted)))
		if errors.Is(err, offsets.ErrUnavailable) {
			continue // asked again
		}
		if err != nil && !told && ctx.Err() == nil {
			c.deps.Log.Warn("checkpoints can't be read again", "partitions", len(doubted), "err", err)
		}
		told = err != nil
		c.drain(ctx, c.superseded(doubted, known, absent(err)))
		clear(doubted)
	}
}

// doubted adds what lanes go by that are in doubt.
func (c *Connector) doubted(to map[route.Partition]offsets.Checkpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, p := range c.parts {
		if p.lane == nil || p.gone {
			continue
		}
		if at, doubt := p.lane.Doubted(); doubt {
			to[key] = at
		}
	}
}

// absent says that a checkpoint which an answer of the store with this error does not hold is gone or can't be read, and not merely unasked for.
func absent(err error) bool {
	var broken *offsets.StorageError
	return err == nil || errors.Is(err, offsets.ErrCorrupt) && !errors.As(err, &broken)
}

// superseded lists the partitions that must be started anew from what is stored. With absent, those of which nothing is stored are among them.
func (c *Connector) superseded(lanes, stored map[route.Partition]offsets.Checkpoint, absent bool) (parts []*partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, ours := range lanes {
		now, there := stored[key]
		p := c.parts[key]
		if p == nil || p.lane == nil || p.gone || !there && !absent {
			continue
		}
		if !there || now.Foreign || now.ProducerID != ours.ProducerID || now.ProducerEpoch > ours.ProducerEpoch {
			p.gone = true
			parts = append(parts, p)
		}
	}
	return parts
}
