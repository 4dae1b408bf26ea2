package connector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/route"
)

// limitTick is how often it is looked whether a target that refuses batches for their size has another limit by now.
const limitTick = 2 * time.Second

// maxMessage is the topic's setting for the largest batch (Kafka).
const maxMessage = "max.message.bytes"

// batchLimit is the largest batch that a topic with this configuration takes, in bytes; 0 when that is not known.
func batchLimit(config map[string]string) (limit int) {
	for _, key := range []string{maxMessage, "segment.bytes"} {
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
		c.drain(ctx, c.resized(refused, configs))
		if c.cfg.On.Oversized == mirror.Raise {
			c.raise(asking, configs)
		}
		cancel()
	})
}

// limitStep is what a raised limit is a multiple of, so that records which grow a little don't raise it one by one.
const limitStep = 1 << 20

// raise raises the limits of target topics to what the partitions need that still run into them, if that is so. The next look starts them anew.
func (c *Connector) raise(ctx context.Context, configs map[string]map[string]string) {
	for topic, parts := range c.refused() {
		now, err := strconv.Atoi(configs[topic][maxMessage])
		need, first := 0, route.Partition{}
		for _, p := range parts {
			if _, size, _ := p.lane.Refused(); size > need {
				need, first = size, p.source
			}
		}
		if err != nil || need <= now { // not known, or it is no matter of this limit
			continue
		}
		to := (need + limitStep - 1) / limitStep * limitStep
		if err := c.admin.target.SetTopicConfig(ctx, topic, maxMessage, strconv.Itoa(to)); err != nil {
			c.deps.Log.Warn("a target topic's limit can't be raised", "topic", topic, "max_message_bytes", to, "err", err)
			continue
		}
		c.deps.Events.Emit(events.Of(first, events.TargetChanged, events.Warning, "the target topic's max.message.bytes was raised").
			Because(fmt.Sprintf("topic %s: %d instead of %d, for a batch of %d bytes", topic, to, now, need)))
	}
}

// refused lists the partitions whose target has refused a batch for its size, by target topic.
func (c *Connector) refused() map[string][]*partition {
	byTarget := map[string][]*partition{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.restlessLocked() {
		if _, _, refused := p.lane.Refused(); refused {
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
			if was, _, still := p.lane.Refused(); still && now > 0 && now != was {
				p.gone = true
				parts = append(parts, p)
			}
		}
	}
	slices.SortFunc(parts, func(a, b *partition) int { return route.Partition.Compare(a.source, b.source) })
	return parts
}
