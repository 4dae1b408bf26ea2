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
	next.TargetOffset, next.LeaderEpoch, next.Fingerprint = end, -1, c.fingerprint(t)
	next.SourceTopicID, next.TargetTopicID = t.source.ID, t.target.ID
	severity := events.Warning
	if at.ProducerID < 0 {
		if err := c.identify(ctx, &next, shared); err != nil {
			return at, err
		}
		severity = events.Info // its first start here
	}
	c.deps.Events.Emit(events.Of(at.Partition, events.CheckpointOverridden, severity, "another program has stored a position: it is gone on from there").
		Range(at.SourceOffset, at.SourceOffset))
	return c.newEpoch(ctx, at, next)
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

// identify gives a checkpoint that has no producer id one; the epoch is the one before the first.
func (c *Connector) identify(ctx context.Context, at *offsets.Checkpoint, shared bool) error {
	if !shared {
		r, err := c.producerID(ctx)
		at.ProducerID, at.ProducerEpoch = r.ProducerID, -1
		return err
	}
	id, _, err := c.target.InitProducerID(ctx) // two sequences under one id can't live in one partition
	if err != nil {
		return fmt.Errorf("target: take a producer id: %w", err)
	}
	at.ProducerID, at.ProducerEpoch = id, -1
	return nil
}
