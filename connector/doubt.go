package connector

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

const (
	// doubtTick is how often lanes are asked whether another owner seems to have begun an epoch.
	doubtTick = 200 * time.Millisecond
	// checkEvery is how often it is read what is stored of a partition that nobody doubts: an idle one saves nothing, and so would not learn that
	// its position was deleted or set.
	checkEvery = 2 * time.Minute
	// mostChecks is how many of those are read at once, so that ten thousand of them are no burst.
	mostChecks = 100
)

// doubtLoop reads checkpoints again that may not be what their lanes go by any more. Where the store names another epoch, or another program
// has set the position, the partition is started anew from there, and where the checkpoint is gone it halts with the start; else the lane goes on
// trying, since what a broker says is a hint.
func (c *Connector) doubtLoop(ctx context.Context) {
	doubted := map[route.Partition]doubt{}
	told := false
	var checks round
	every(ctx, doubtTick, func() {
		c.doubted(doubted, &checks, time.Now())
		if len(doubted) == 0 {
			return
		}
		parts, err := c.reread(ctx, doubted)
		c.drain(ctx, parts)
		if errors.Is(err, offsets.ErrUnavailable) {
			return // asked again
		}
		if err != nil && !told && ctx.Err() == nil {
			c.deps.Log.Warn("checkpoints can't be read again", "partitions", len(doubted), "err", err)
		}
		told = err != nil
		clear(doubted)
	})
}

// reread loads what is stored of partitions and lists those that must be started anew. One that can't be read says nothing of the others.
func (c *Connector) reread(ctx context.Context, lanes map[route.Partition]doubt) (parts []*partition, err error) {
	known, err := c.deps.Store.Load(ctx, slices.Collect(maps.Keys(lanes)))
	if err == nil || !absent(err) || len(lanes) == 1 {
		return c.superseded(lanes, known, absent(err)), err
	}
	var faults []error
	for key, at := range lanes {
		some, err := c.reread(ctx, map[route.Partition]doubt{key: at})
		parts, faults = append(parts, some...), append(faults, err)
	}
	return parts, errors.Join(faults...)
}

// doubt is what a lane went by when it was found in doubt.
type doubt struct {
	lane *mirror.Lane
	at   offsets.Checkpoint
}

// round is the partitions of which it is still to be read what is stored, until the next round begins with all.
type round struct {
	left []route.Partition
	next time.Time
}

// doubted adds what lanes go by that are in doubt, and some whose turn it is in the round.
func (c *Connector) doubted(to map[route.Partition]doubt, r *round, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.restlessLocked() {
		if at, is := p.lane.Doubted(); is {
			to[p.source] = doubt{p.lane, at}
		}
	}
	if len(r.left) == 0 && now.After(r.next) {
		r.left, r.next = slices.Collect(maps.Keys(c.parts)), now.Add(checkEvery)
	}
	some := min(len(r.left), mostChecks)
	for _, key := range r.left[:some] {
		if p := c.parts[key]; p != nil && p.lane != nil && !p.gone {
			at, _ := p.lane.Doubted()
			to[key] = doubt{p.lane, at}
		}
	}
	r.left = r.left[some:]
}

// absent says that a checkpoint which an answer of the store with this error does not hold is gone or can't be read, and not merely unasked for.
func absent(err error) bool {
	var broken *offsets.StorageError
	return err == nil || errors.Is(err, offsets.ErrCorrupt) && !errors.As(err, &broken)
}

// superseded lists the partitions that must be started anew from what is stored. With absent, those of which nothing is stored are among them. One
// that began anew since it was in doubt has read its checkpoint later than that.
func (c *Connector) superseded(lanes map[route.Partition]doubt, stored map[route.Partition]offsets.Checkpoint, absent bool) (parts []*partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, d := range lanes {
		now, there := stored[key]
		p, ours := c.parts[key], &d.at
		if p == nil || p.lane != d.lane || p.gone || !there && !absent {
			continue
		}
		if !there || now.Foreign || now.ProducerID != ours.ProducerID || now.ProducerEpoch > ours.ProducerEpoch {
			p.gone = true
			parts = append(parts, p)
		} else {
			p.lane.Follow(now)
		}
	}
	return parts
}
