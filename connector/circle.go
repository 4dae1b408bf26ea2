package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/causeway-mirror/causeway/loops"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// circleEnds are the two clusters as the markers of loops name them.
func (c *Connector) circleEnds(ctx context.Context, source, target *wire.Metadata) (loops.Ends, error) {
	r, err := c.deps.Store.Route(ctx)
	if err != nil {
		return loops.Ends{}, storeError("load route", err)
	}
	return loops.Ends{Source: source.ClusterID, Target: target.ClusterID, Producer: r.ProducerID}, nil
}

// leaveOutCircling asks about the topics that are left, source topic → target topic, and tells those that are refused.
func (c *Connector) leaveOutCircling(byTopic map[string]*pair, ask func(topics map[string]string) map[string]*loops.RefusedError) {
	topics := make(map[string]string, len(byTopic))
	for name, t := range byTopic {
		if t.topic.Source != "" {
			topics[name] = t.topic.Target
		}
	}
	for name, why := range ask(topics) {
		c.leaveOut(byTopic[name], &haltError{why})
	}
}

// announce names the producer ids of a topic's partitions to the routes that read its target, before anything is sent with them: those that the
// checkpoints had that were stored, and those that they have now.
func (c *Connector) announce(ctx context.Context, t *pair, stored, now map[route.Partition]offsets.Checkpoint) error {
	var ids []int64
	for _, at := range stored {
		if at.ProducerID >= 0 {
			ids = append(ids, at.ProducerID)
		}
	}
	for _, at := range now {
		if at.ProducerID < 0 && c.cfg.DropLoops {
			return &haltError{fmt.Errorf("loops: drop: %s is written without a producer id, so another route can't tell what this one brings", at.Partition)}
		}
		ids = append(ids, at.ProducerID)
	}
	err := c.admin.loops.Announce(ctx, t.topic.Source, ids...)
	if _, refused := errors.AsType[*loops.RefusedError](err); refused || errors.Is(err, loops.ErrUnannounced) {
		return &haltError{err}
	}
	return err
}

// sieve is what is left out of a topic; nil if nothing is.
func (c *Connector) sieve(topic string) mirror.Sieve {
	if s := c.admin.loops.Sieve(topic); s != nil {
		return s
	}
	return nil
}

// circleLoop looks at the markers time and again: a ring may be closed by a route that begins elsewhere, and opened by one that ends.
func (c *Connector) circleLoop(ctx context.Context) {
	every(ctx, c.cfg.LoopInterval, func() { c.review(ctx) })
}

func (c *Connector) review(ctx context.Context) {
	r, err := c.deps.Store.Route(ctx)
	if err != nil { // a store that failed is told by who commits
		return
	}
	refused := c.admin.loops.Review(ctx, r.ProducerID, c.topicsHere)
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []*partition
	for source, p := range c.parts {
		if p.lane != nil && !p.gone && slices.Contains(refused, source.Topic) {
			p.gone = true // what is in flight is drained; then it is refused like any other that begins
			parts = append(parts, p)
		}
	}
	c.drain(ctx, parts)
}

// topicsHere are the topics of which a partition shall run here.
func (c *Connector) topicsHere() map[string]bool {
	here := map[string]bool{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.parts {
		here[p.Topic] = true
	}
	return here
}

// Circling gives the topics that are not copied since they would come back to where they come from, each with the reason.
func (c *Connector) Circling() map[string]string {
	out := map[string]string{}
	for topic, why := range c.admin.loops.Refused() {
		out[topic] = why.Error()
	}
	return out
}
