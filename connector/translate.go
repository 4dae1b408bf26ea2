package connector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/survey"
)

// A source offset is found on the target by the sequence of its record, which is that of the position less the records from it on. As long as each
// offset was a record, that is the number of offsets, and never too small; else the records are counted at the source. The record that stands under
// that sequence is compared with the source's. Where it is another one, as behind a new epoch, the first like it on the target is taken.

// Translation is where readers of the target go on who would read the source from an offset on.
type Translation struct {
	Source       route.Partition
	Offset       route.Offset // of the source
	Target       route.Partition
	TargetOffset route.Offset // nothing from Offset on stands before it, so far as it is copied; NoOffset if Why says why it is not known
	Exact        bool         // the first record from Offset on stands there, or will stand there next; else it may be an earlier one
	Why          string
}

// Translate finds a source offset on the target. What is not known of it stands in Why; errors: ErrElsewhere, what the brokers and the store say.
func (c *Connector) Translate(ctx context.Context, p route.Partition, at route.Offset) (Translation, error) {
	out := Translation{Source: p, Offset: at, TargetOffset: route.NoOffset}
	c.mu.Lock()
	q := c.parts[p]
	if q != nil {
		out.Target = q.target
	}
	c.mu.Unlock()
	if q == nil || out.Target.Topic == "" {
		return out, fmt.Errorf("translate an offset of %s: %w", p, ErrElsewhere)
	}
	known, err := c.deps.Store.Load(ctx, []route.Partition{p})
	if err != nil {
		return out, storeError("load checkpoint", err)
	}
	from, begun := known[p]
	if !begun || from.Foreign {
		out.Why = "nothing of the partition was copied yet"
		return out, nil
	}
	topic, err := c.deps.Handler.Topic(p.Topic)
	if err != nil {
		return out, fmt.Errorf("translate an offset of %s: %w", p, err)
	}
	source, err := survey.Open(ctx, c.source, p, c.cfg.Isolation == ReadCommitted)
	if err != nil {
		return out, fmt.Errorf("source: %w", err)
	}
	target, err := survey.Open(ctx, c.target, out.Target, false)
	if err != nil {
		return out, fmt.Errorf("target: %w", err)
	}
	t := translator{from: from, source: survey.Source{Log: source, Records: topic.Records}, target: target}
	err = t.find(ctx, &out)
	return out, err
}

// translator translates offsets of one partition.
type translator struct {
	from   offsets.Checkpoint
	source survey.Source
	target survey.Log
}

// find fills in where it stands.
func (t *translator) find(ctx context.Context, out *Translation) error {
	end, next := t.from.TargetOffset, t.from.TargetOffset >= 0
	if !next {
		end = t.target.End
	}
	switch at := out.Offset; {
	case at >= t.from.SourceOffset:
		out.TargetOffset, out.Exact = end, next && at == t.from.SourceOffset
		return nil
	case at < t.source.Start:
		out.Why = fmt.Sprintf("the source has deleted it: its first offset is %d", t.source.Start)
		return nil
	}
	first, digest, err := t.source.First(ctx, out.Offset, t.from.SourceOffset)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if first < 0 { // no record is left up to there
		out.TargetOffset, out.Exact = end, next
		return nil
	}
	if out.TargetOffset, err = t.counted(ctx, first, digest); err != nil || out.TargetOffset >= 0 {
		out.Exact = err == nil
		return err
	}
	if out.TargetOffset, err = t.target.FirstLike(ctx, t.from.ProducerID, digest); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if out.TargetOffset < 0 {
		out.Why = fmt.Sprintf("the target does not have the record at %d: it was left out, or copied before the route began anew, or is deleted there", first)
	}
	return nil
}

// counted finds the record at a source offset by its sequence; NoOffset if another one stands there.
func (t *translator) counted(ctx context.Context, first route.Offset, digest uint64) (route.Offset, error) {
	to, err := t.sent(ctx, int64(t.from.SourceOffset-first), digest)
	if err != nil || to >= 0 {
		return to, err
	}
	n, err := t.source.Count(ctx, first, t.from.SourceOffset)
	if err != nil {
		return route.NoOffset, fmt.Errorf("source: %w", err)
	}
	return t.sent(ctx, n, digest)
}

// mostBack is how many records a sequence can tell apart.
const mostBack = 1 << 30

// sent finds the record that was sent n records before the checkpoint, if it has that digest; else NoOffset.
func (t *translator) sent(ctx context.Context, n int64, digest uint64) (route.Offset, error) {
	most := t.target.End
	if t.from.TargetOffset >= 0 {
		most = t.from.TargetOffset - route.Offset(n)
	}
	if n >= mostBack || most < t.target.Start {
		return route.NoOffset, nil
	}
	sent := survey.Sent{ID: t.from.ProducerID, Epoch: t.from.ProducerEpoch, Sequence: offsets.Plus(t.from.Sequence, int32(-n))}
	at, found, err := t.target.Find(ctx, sent, most)
	if err != nil {
		return route.NoOffset, fmt.Errorf("target: %w", err)
	}
	if found != digest {
		return route.NoOffset, nil
	}
	return at, nil
}

// TranslateGroup translates the offsets that a consumer group of the source has committed, of the partitions that run here, in their order.
func (c *Connector) TranslateGroup(ctx context.Context, group string) ([]Translation, error) {
	committed, err := c.admin.source.GroupOffsets(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	all := make([]Translation, 0, len(committed))
	for _, p := range slices.SortedFunc(maps.Keys(committed), route.Partition.Compare) {
		one, err := c.Translate(ctx, p, committed[p])
		if errors.Is(err, ErrElsewhere) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
