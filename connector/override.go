package connector

import (
	"context"
	"fmt"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// overridden goes on from a position that another program has stored: a new epoch begins there, because what was counted up to the old
// position says nothing of this one. A partition that uReplicator has mirrored alone so far gets its producer id now.
func (c *Connector) overridden(ctx context.Context, t *pair, at offsets.Checkpoint) (offsets.Checkpoint, error) {
	number, shared := t.align.Target(at.Partition.Partition)
	to := route.Partition{Topic: t.topic.Target, Partition: number}
	if differ(at.TargetTopicID, t.target.ID) {
		return at, &haltError{fmt.Errorf("target topic %s was recreated: its id is %s, the checkpoint's %s", t.topic.Target, t.target.ID, at.TargetTopicID)}
	}
	end, err := c.targetEnd(ctx, t, to)
	if err != nil {
		return at, err
	}
	next := at
	next.TargetOffset, next.LeaderEpoch, next.Fingerprint = end, -1, c.fingerprint(t, at.Partition)
	next.SourceTopicID, next.TargetTopicID = t.source.ID, t.target.ID
	severity := events.Warning
	if at.ProducerID < 0 {
		if next.ProducerID, err = c.newcomer(ctx, t, shared, end); err != nil {
			return at, err
		}
		next.ProducerEpoch, severity = -1, events.Info // the epoch before the first; its first start here
	}
	next, err = c.newEpoch(ctx, at, next)
	if err == nil { // once: a beginning that fails is tried again
		c.deps.Events.Emit(events.Of(at.Partition, events.CheckpointOverridden, severity, "another program has stored a position: it is gone on from there").
			Range(at.SourceOffset, at.SourceOffset))
	}
	return next, err
}

func (c *Connector) targetEnd(ctx context.Context, t *pair, to route.Partition) (route.Offset, error) {
	broker, err := leader(t.target, to)
	if err != nil {
		return 0, fmt.Errorf("target: %w", err)
	}
	ends, err := c.target.ListOffsets(ctx, map[route.Partition]int32{to: broker}, wire.AtEnd, false)
	if err == nil {
		err = ends[to].Err
	}
	if err != nil {
		return 0, fmt.Errorf("target: %w", err)
	}
	return ends[to].Offset, nil
}

// newcomer is the producer id of a partition whose first record goes to that offset of the target. The route's own is for logs to which nothing
// was ever written. Any other may know it, of a time whose checkpoint was deleted since: it would refuse the first sequences of a new beginning
// for ever, or take a batch of the same length for the one that it has.
func (c *Connector) newcomer(ctx context.Context, t *pair, shared bool, end route.Offset) (int64, error) {
	switch {
	case shared: // two sequences under one id can't live in one partition
		return c.freshID(ctx)
	case end == 0:
		r, err := c.producerID(ctx)
		return r.ProducerID, err
	case t.newcomers == nil:
		id, err := c.freshID(ctx)
		if err != nil {
			return id, err
		}
		t.newcomers = &id
	}
	return *t.newcomers, nil
}

// freshID takes a producer id that nobody has used. Its first epoch is 0.
func (c *Connector) freshID(ctx context.Context) (int64, error) {
	id, _, err := c.target.InitProducerID(ctx)
	if err != nil {
		return id, fmt.Errorf("target: take a producer id: %w", err)
	}
	return id, nil
}
