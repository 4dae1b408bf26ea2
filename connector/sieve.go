package connector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/survey"
	"github.com/causeway-mirror/causeway/wire"
)

// mostSieved bounds what is read of the source in vain, while the other partitions of the topic wait: where records were changed as well, none is ever
// found on the target.
const mostSieved = 64 << 20

// sieved moves a checkpoint behind what the target has beyond it that another filter has left, and gives what is to be told once that is stored:
// nothing, unless it can't be told for sure what that is. Another filter forwards other records, so that the sequences of what was stored beyond the
// checkpoint say nothing of where to go on; contents do.
func (c *Connector) sieved(ctx context.Context, t *pair, at, next offsets.Checkpoint) (offsets.Checkpoint, func(), error) {
	unsure := func() { c.unsure(at, "the filter, transform or isolation was changed") } // nothing is, after a clean end
	if at.Clean || at.TargetOffset < 0 || uncommitted(at.Fingerprint) != uncommitted(next.Fingerprint) {
		return next, unsure, nil
	}
	number, _ := t.align.Target(at.Partition.Partition)
	p := route.Partition{Topic: t.topic.Target, Partition: number}
	last, err := c.appended(ctx, t, p, at)
	if err != nil {
		return next, nil, fmt.Errorf("target: %w", err)
	}
	target, err := survey.Open(ctx, c.target, p, false)
	if err != nil {
		return next, nil, fmt.Errorf("target: %w", err)
	}
	if target.End < at.TargetOffset { // it has lost what it acknowledged: the lane finds that out, by the offset that stays
		return next, unsure, nil
	}
	stored, whole, err := target.Beyond(ctx, at, last+1)
	switch {
	case err != nil:
		return next, nil, fmt.Errorf("target: %w", err)
	case whole && last >= int64(len(stored)):
		return next, nil, fmt.Errorf("target: what was appended to %s in the old epoch is not all replicated yet", p) //nolint:err113 // is tried again
	case !whole || last >= 0 && last+1 != int64(len(stored)):
		return next, unsure, nil
	}
	source, err := survey.Open(ctx, c.source, at.Partition, c.cfg.Isolation == ReadCommitted)
	if err != nil {
		return next, nil, fmt.Errorf("source: %w", err)
	}
	from := route.Position{Offset: at.SourceOffset, LeaderEpoch: at.LeaderEpoch}
	behind, found, err := source.Follow(ctx, from, stored, mostSieved)
	if err != nil {
		return next, nil, fmt.Errorf("source: %w", err)
	}
	if !found {
		return next, unsure, nil
	}
	next.SourceOffset, next.LeaderEpoch, next.TargetOffset = behind.Offset, behind.LeaderEpoch, target.End
	next.AckedAt = time.Time{} // what still comes in the old epoch before the new one is opened is noticed by the first batch of that
	return next, func() {}, nil
}

func uncommitted(fingerprint string) bool { return strings.Contains(fingerprint, "+"+ReadUncommitted) }

// appended is how many records beyond the checkpoint, less one, the target's leader says that it has of us; -1 where it has none, or doesn't say.
func (c *Connector) appended(ctx context.Context, t *pair, p route.Partition, at offsets.Checkpoint) (int64, error) {
	broker, err := leader(t.target, p)
	if err != nil {
		return -1, err
	}
	all, err := c.target.DescribeProducers(ctx, broker, []route.Partition{p})
	known := all[p]
	for _, err := range []error{err, known.Err} {
		if err != nil && !errors.Is(err, wire.ErrUnsupported) && cluster.Classify(err) != cluster.Authorization {
			return -1, err
		}
	}
	for _, a := range known.Active {
		if a.ID == at.ProducerID && a.Epoch == at.ProducerEpoch {
			return offsets.Ahead(at.Sequence, a.LastSequence), nil
		}
	}
	return -1, nil
}
