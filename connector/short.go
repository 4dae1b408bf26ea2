package connector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// shortTick is how often lanes are asked whether their source seems to have less than their target.
const shortTick = 2 * time.Second

// shortLoop asks the source where it ends on behalf of lanes that can't believe what they know of it: an idle partition's fetches don't say.
func (c *Connector) shortLoop(ctx context.Context) {
	every(ctx, shortTick, func() {
		short := c.short()
		if len(short) == 0 {
			return
		}
		asking, cancel := context.WithTimeout(ctx, answerTimeout)
		ends, err := c.sourceEnds(asking, short)
		cancel()
		if err != nil {
			return // an unreachable source is told elsewhere
		}
		for p, end := range ends {
			if end.Err == nil {
				short[p].Ends(end.Offset)
			}
		}
	})
}

func (c *Connector) short() map[route.Partition]*mirror.Lane {
	lanes := map[route.Partition]*mirror.Lane{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.restlessLocked() {
		if p.lane.Short() {
			lanes[p.source] = p.lane
		}
	}
	return lanes
}

// sourceEnds asks the leaders.
func (c *Connector) sourceEnds(ctx context.Context, lanes map[route.Partition]*mirror.Lane) (map[route.Partition]wire.ListedOffset, error) {
	topics := map[string]struct{}{}
	for p := range lanes {
		topics[p.Topic] = struct{}{}
	}
	m, err := c.source.Metadata(ctx, slices.Sorted(maps.Keys(topics))...)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	leaders := map[route.Partition]int32{}
	for p := range lanes {
		if from, err := leader(m.Topics[p.Topic], p); err == nil {
			leaders[p] = from
		}
	}
	return c.source.ListOffsets(ctx, leaders, wire.AtEnd, c.cfg.Isolation == ReadCommitted)
}
