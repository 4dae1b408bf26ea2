package connector

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// limitTick is how often it is looked whether a target that refuses batches for their size has another limit by now.
const limitTick = 2 * time.Second

// batchLimit is the largest batch that a topic with this configuration takes, in bytes; 0 when that is not known.
func batchLimit(config map[string]string) (limit int) {
	for _, key := range []string{"max.message.bytes", "segment.bytes"} {
		if n, err := strconv.Atoi(config[key]); err == nil && n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// limitLoop starts partitions anew whose target refuses batches for their size and has another limit than when they began: they are split to that
// one then. Where the limit is the same, a record by itself is too large, and only somebody else can mend that.
func (c *Connector) limitLoop(ctx context.Context) {
	every(ctx, limitTick, func() {
		refused := c.refused()
		if len(refused) == 0 {
			return
		}
		asking, cancel := context.WithTimeout(ctx, answerTimeout)
		configs, _ := c.admin.target.TopicConfigs(asking, slices.Sorted(maps.Keys(refused))...) // of what is missing nothing is known: it stays as it is, halted
		cancel()
		c.drain(ctx, c.resized(refused, configs))
	})
}

// refused lists the partitions whose target has refused a batch for its size, by target topic.
func (c *Connector) refused() map[string][]*partition {
	byTarget := map[string][]*partition{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.restlessLocked() {
		if _, refused := p.lane.Refused(); refused {
			byTarget[p.target.Topic] = append(byTarget[p.target.Topic], p)
		}
	}
	return byTarget
}

// resized takes those of the refused partitions whose target's limit has changed.
func (c *Connector) resized(refused map[string][]*partition, configs map[string]map[string]string) (parts []*partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, config := range configs {
		now := batchLimit(config)
		for _, p := range refused[topic] {
			if p.gone || c.parts[p.source] != p {
				continue
			}
			if was, still := p.lane.Refused(); still && now > 0 && now != was {
				p.gone = true
				parts = append(parts, p)
			}
		}
	}
	slices.SortFunc(parts, func(a, b *partition) int { return route.Partition.Compare(a.source, b.source) })
	return parts
}
