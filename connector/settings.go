package connector

import (
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// Configure says what holds for a topic from now on, in place of what held before, also for partitions that are yet to come. It waits for nothing.
func (c *Connector) Configure(topic string, t operator.Topic) {
	t = t.Clone()
	c.mu.Lock()
	was := c.settings[topic]
	c.settings[topic] = t
	if t.IsZero() {
		delete(c.settings, topic)
	}
	for key, p := range c.parts {
		if key.Topic != topic {
			continue
		}
		if p.lane != nil {
			p.lane.Pause(t.Stopped(key.Partition))
		}
		c.holdLineLocked(p)
	}
	c.mu.Unlock()
	c.mirror.SetTopicLimits(topic, mirror.Limits(t.Limits))
	for number := range was.Partitions {
		if _, still := t.Partitions[number]; !still {
			c.mirror.SetPartitionLimits(route.Partition{Topic: topic, Partition: number}, mirror.Limits{})
		}
	}
	for number, s := range t.Partitions {
		c.mirror.SetPartitionLimits(route.Partition{Topic: topic, Partition: number}, mirror.Limits(s.Limits))
	}
}

// pausedLocked says whether an operator has paused a partition. The caller holds mu.
func (c *Connector) pausedLocked(p route.Partition) bool {
	return c.settings[p.Topic].Stopped(p.Partition)
}

// Has says whether a partition shall run here.
func (c *Connector) Has(p route.Partition) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.parts[p]
	return q != nil && !q.leave
}

// Retry has a partition that stands still tried at once; false if it is not here.
func (c *Connector) Retry(p route.Partition) bool {
	c.mu.Lock()
	q := c.parts[p]
	if q != nil && q.lane != nil {
		q.lane.Retry()
	}
	c.mu.Unlock()
	if q == nil {
		return false
	}
	c.signal() // one that could not be started is started anew
	return true
}
