package connector

import (
	"context"
	"slices"

	"github.com/causeway-mirror/causeway/loops"
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
