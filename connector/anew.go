package connector

import (
	"cmp"
	"context"
	"fmt"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// anew moves a checkpoint to where a partition goes on that can't from there, and gives what is to be told of it once that is stored; nil: nothing is
// to be stored.
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
		next.LeaderEpoch = -1
		if first >= at.SourceOffset { // if it was deleted, the lane finds that out and tells it
			break
		}
		next.SourceOffset = first
		tell = func() {
			c.deps.Events.Emit(events.Of(at.Partition, events.DuplicatesPossible, events.Warning, "what was copied already is copied again").
				Range(first, at.SourceOffset-1).Because(a.Why))
		}
	case mirror.LeftOut:
		if a.At != at.SourceOffset { // not all before it is stored as acknowledged: it is found again
			return at, nil, nil
		}
		next, err := c.leftOut(ctx, t, at, next, a)
		return next, func() {}, err
	case mirror.Gone:
		if a.At != at.SourceOffset { // not all before it is stored as acknowledged: it is found again
			return at, nil, nil
		}
		if err := c.deps.Events.Flush(ctx); err != nil { // what excuses an offset is stored before it; the lane has told it
			return at, nil, storeError("store events", err)
		}
		next.SourceOffset, next.TargetOffset, next.LeaderEpoch, tell = a.To, cmp.Or(a.End, at.TargetOffset), -1, func() {}
	case mirror.Lost:
		number, _ := t.align.Target(at.Partition.Partition)
		end, err := c.targetEnd(ctx, t, route.Partition{Topic: t.topic.Target, Partition: number})
		if err != nil {
			return at, nil, err
		}
		next.TargetOffset = end // what lies before it is as the lane has told
	case mirror.Resent:
		return c.resent(ctx, t, at, next, a.Why)
	case mirror.Recreated, mirror.Uncounted: // the former shows in the topic's id
	}
	return next, tell, nil
}

// leftOut tells of a record that the target refuses, and moves a checkpoint behind it. The event is stored when it returns: who dies then has told
// what it has not done, and the next one does it.
func (c *Connector) leftOut(ctx context.Context, t *pair, at, next offsets.Checkpoint, a mirror.Anew) (offsets.Checkpoint, error) {
	why := a.Kind + ": " + a.Why
	if a.Record != nil {
		topic, err := c.bury(ctx, t, at, a)
		if err != nil {
			return at, err
		}
		why += "; it is on topic " + topic
	}
	if c.renewals.news(at.Partition, recordOf(a)) {
		c.deps.Events.Emit(events.Of(at.Partition, events.RangeSkipped, events.Error, "a record that the target does not take was left out").
			Range(a.At, a.At).Because(why))
	}
	if err := c.deps.Events.Flush(ctx); err != nil {
		return at, storeError("store events", err)
	}
	next.SourceOffset, next.LeaderEpoch = a.At+1, a.LeaderEpoch
	return next, nil
}

// recordOf names a record that is left out. After a reset or in a topic that was made anew another one has its offset, or it is left out once more.
func recordOf(a mirror.Anew) string {
	return fmt.Sprintf("the record at %d in epoch %d of id %d", a.At, a.ProducerEpoch, a.ProducerID)
}

// renewedHalts halts a partition whose source topic was made anew, and tells that once.
func (c *Connector) renewedHalts(at offsets.Checkpoint, id route.TopicID) error {
	why := fmt.Errorf("source topic %s has the id %s, the position is of one with the id %s: it was recreated, and recreated is %s: "+
		"reset the position to go on", at.Partition.Topic, id, at.SourceTopicID, mirror.Halt)
	if c.renewals.news(at.Partition, "topic id "+id.String()) {
		c.deps.Events.Emit(events.Of(at.Partition, events.TopicRecreated, events.Error,
			"the source topic has another id than the checkpoint: the partition stands still").
			Range(at.SourceOffset, at.SourceOffset).Because(why.Error()))
	}
	return &haltError{why}
}
