package connector

import (
	"context"
	"fmt"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// anew moves a checkpoint to where a partition goes on that can't from there, and gives what is to be told of it once that is stored.
func (c *Connector) anew(ctx context.Context, t *pair, at, next offsets.Checkpoint, a mirror.Anew) (offsets.Checkpoint, func(), error) {
	tell := func() { c.unsure(at, a.Why) }
	switch a.Cause {
	case mirror.Parted:
		if a.At < at.SourceOffset {
			next.SourceOffset, next.LeaderEpoch = a.At, -1
			tell = func() {
				c.deps.Events.Emit(events.Of(at.Partition, events.SourceDiverged, events.Warning,
					"went on where the source's log parts from what was copied; the target keeps what the source has lost").
					Range(a.At, at.SourceOffset-1).Because(a.Why))
			}
		}
	case mirror.Again:
		first, err := c.beginning(ctx, t, at.Partition)
		if err != nil {
			return at, nil, err
		}
		if first >= at.SourceOffset { // if it was deleted, the lane finds that out and tells it
			break
		}
		next.SourceOffset, next.LeaderEpoch = first, -1
		tell = func() {
			c.deps.Events.Emit(events.Of(at.Partition, events.DuplicatesPossible, events.Warning, "what was copied already is copied again").
				Range(first, at.SourceOffset-1).Because(a.Why))
		}
	case mirror.Recreated, mirror.Uncounted: // the former shows in the topic's id
	}
	return next, tell, nil
}

// renewedHalts halts a partition whose source topic was made anew, and tells that once.
func (c *Connector) renewedHalts(at offsets.Checkpoint, id route.TopicID) error {
	why := fmt.Errorf("source topic %s has the id %s, the position is of one with the id %s: it was recreated, and recreated is %s: reset the position to go on",
		at.Partition.Topic, id, at.SourceTopicID, mirror.Halt)
	c.mu.Lock()
	told := c.renewed[at.Partition] == id
	c.renewed[at.Partition] = id
	c.mu.Unlock()
	if !told {
		c.deps.Events.Emit(events.Of(at.Partition, events.TopicRecreated, events.Error, "the source topic has another id than the checkpoint: the partition stands still").
			Range(at.SourceOffset, at.SourceOffset).Because(why.Error()))
	}
	return &haltError{why}
}
