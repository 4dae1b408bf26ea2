package connector

import (
	"context"
	"fmt"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/survey"
)

// What a target has lost is copied again, if route.on.target_lost says so: from the first record that it lacks, behind what it has by then, in a new
// epoch. Which record that is, the target's last batch of ours says: its sequence is so many records before the checkpoint's, and the source still
// has them, or tells how many it lacks. That record is compared with the source's, since a source that was compacted, or a beginning of the epoch
// behind something that was left out, makes the count wrong; then the partition halts, because more or less than what was lost would be sent.

// notYetError says that a target is not ready to be judged; it is asked again.
type notYetError struct{ why string }

func (e *notYetError) Error() string { return "target: " + e.why }

// resent moves a checkpoint back to the first record that the target has lost, as the lane before has told; a tell of nil says that it has lost nothing.
func (c *Connector) resent(ctx context.Context, t *pair, at, next offsets.Checkpoint, why string) (offsets.Checkpoint, func(), error) {
	number, _ := t.align.Target(at.Partition.Partition)
	to := route.Partition{Topic: t.topic.Target, Partition: number}
	target, err := survey.Open(ctx, c.target, to, false)
	if err != nil {
		return at, nil, fmt.Errorf("target: %w", err)
	}
	last, err := target.LastOf(ctx, at.ProducerID)
	if err != nil {
		return at, nil, fmt.Errorf("target: %w", err)
	}
	what := fmt.Sprintf("loss of %d/%d before %d at a target that ends with sequence %d in epoch %d of it", at.ProducerID, at.ProducerEpoch, at.SourceOffset,
		last.Sequence, last.Epoch) // not where it ends: others may write to it all the time
	if err := c.renewals.undecided(at.Partition, what); err != nil {
		return at, nil, err
	}
	if err := c.replicated(ctx, t, to, at, last); err != nil {
		return at, nil, err
	}
	lost := int64(at.Sequence)
	if last.Known && last.Epoch == at.ProducerEpoch {
		lost = offsets.Ahead(offsets.Plus(last.Sequence, 1), at.Sequence)
	}
	if last.Known && (last.Epoch > at.ProducerEpoch || lost < 0 || lost == 0 && last.Epoch == at.ProducerEpoch) {
		return at, nil, nil // it has all again, or somebody sees to it
	}
	source, err := survey.Open(ctx, c.source, at.Partition, c.cfg.Isolation == ReadCommitted)
	if err != nil {
		return at, nil, fmt.Errorf("source: %w", err)
	}
	next.SourceOffset, err = firstLost(ctx, &survey.Source{Log: source, Records: t.topic.Records}, at.SourceOffset, last, lost)
	if err != nil {
		return at, nil, c.renewals.undecide(at.Partition, what, err)
	}
	next.TargetOffset, next.LeaderEpoch = target.End, -1
	if c.renewals.news(at.Partition, what) {
		c.tellResent(at, next.SourceOffset, why)
	}
	return next, func() {}, c.told(ctx)
}

// refilled tells that a target topic that was made anew gets all that the source has.
func (c *Connector) refilled(ctx context.Context, at, next offsets.Checkpoint) error {
	why := fmt.Sprintf("the target topic was made anew: its id is %s, it was %s", next.TargetTopicID, at.TargetTopicID)
	if !c.renewals.news(at.Partition, why) {
		return c.told(ctx)
	}
	c.tellResent(at, next.SourceOffset, why)
	if next.TargetOffset > 0 {
		c.deps.Events.Emit(events.Of(at.Partition, events.DuplicatesPossible, events.Warning,
			"the new target topic held records already: what was in flight when it was made may be there a second time").
			Range(next.SourceOffset, at.SourceOffset).Because(why))
	}
	return c.told(ctx)
}

// told stores what was told, before a position goes back: who dies then has told what the next one does.
func (c *Connector) told(ctx context.Context) error {
	if err := c.deps.Events.Flush(ctx); err != nil {
		return storeError("store events", err)
	}
	return nil
}

// tellResent tells which records are copied again.
func (c *Connector) tellResent(at offsets.Checkpoint, first route.Offset, why string) {
	message, end := "what the target has lost is copied again", at.SourceOffset-1
	if first > end {
		message, end = "the target has lost nothing of ours: it is gone on", first
	}
	c.deps.Events.Emit(events.Of(at.Partition, events.TargetChanged, events.Error, message).Range(first, end).Because(why))
}

// replicated refuses to judge a log that does not show yet all that its leader has of ours.
func (c *Connector) replicated(ctx context.Context, t *pair, to route.Partition, at offsets.Checkpoint, last survey.Last) error {
	broker, err := leader(t.target, to)
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	known, err := c.target.DescribeProducers(ctx, broker, []route.Partition{to})
	if err != nil || known[to].Err != nil {
		return nil //nolint:nilerr // a target that can't be asked for it shows what it has
	}
	for _, a := range known[to].Active {
		switch {
		case a.ID != at.ProducerID || a.LastSequence < 0 || last.Known && a.Epoch == last.Epoch && a.LastSequence == last.Sequence:
		case !last.Known:
			return &haltError{fmt.Errorf("%s knows our producer id and holds no record of it: reset the position", to)}
		default:
			return &notYetError{fmt.Sprintf("%s has a record of ours with sequence %d in epoch %d, which is not replicated", to, a.LastSequence, a.Epoch)}
		}
	}
	return nil
}

// firstLost is the source offset of the first record that a target has lost, whose last of ours is given, and which lacks n records of the newest epoch
// before the end. Where the source has it no more, the offset is at most where it was.
func firstLost(ctx context.Context, source *survey.Source, end route.Offset, last survey.Last, n int64) (route.Offset, error) {
	if !last.Known { // it has nothing of ours
		return source.Start, nil
	}
	back, err := source.Back(ctx, end, n)
	if err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}
	known := last.Digest != 0 && back.Before == last.Digest
	if back.Before == 0 && last.Digest != 0 { // the source does not have what the target ends with, or it would be somewhere in it
		has, err := source.Has(ctx, last.Digest, source.Start, end)
		if err != nil {
			return 0, fmt.Errorf("source: %w", err)
		}
		known = !has
	}
	if !known {
		return 0, &haltError{fmt.Errorf("the target has lost records, and from which on can't be told: the record before the last %d at the source is not "+
			"the target's last, since records were taken away or left out meanwhile: reset the position", n)}
	}
	return max(0, back.First-route.Offset(back.Lacks)), nil
}
