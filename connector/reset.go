package connector

import (
	"context"
	"errors"
	"fmt"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

var (
	// ErrElsewhere says that a partition does not run here.
	ErrElsewhere = errors.New("the partition does not run here")
	// ErrBusy says that an earlier reset of the partition is still under way.
	ErrBusy = errors.New("an earlier reset of the partition is under way")
)

// RangeError says that an offset to reset to is not in the log, as far as a mirror can reach.
type RangeError struct {
	To         route.Offset
	Start, End route.Offset
}

// Error names the offset and the range.
func (e *RangeError) Error() string {
	return fmt.Sprintf("to: %d: must be from %d to %d, which is what the source has", e.To, e.Start, e.End)
}

// Reset is what an operator wants of a partition's position.
type Reset struct {
	To operator.Place
	// From is the epoch in which an earlier try of the same reset found the partition. One that is in another epoch now was reset by that try.
	From *operator.Epoch
	// Note, if there is one, stores From before anything is changed, so that a reset which is cut off is not done twice. Its error ends the reset.
	Note func(ctx context.Context, from operator.Epoch) error
}

// wish is a reset that waits for its partition to be started anew.
type wish struct {
	Reset

	done chan struct{} // closed when err is set
	err  error
}

// Reset sets a partition's position by an operator's decision: it is drained, and started anew from there in a new epoch. It returns when that is
// stored, or refused; what is away meanwhile, a cluster of Kafka or the store, is waited for. Errors: *RangeError, offsets.ErrMissing, ErrElsewhere,
// ErrBusy, Note's, and the context's, which takes the wish back.
func (c *Connector) Reset(ctx context.Context, p route.Partition, r Reset) error {
	w := &wish{Reset: r, done: make(chan struct{})}
	c.mu.Lock()
	q := c.parts[p]
	switch {
	case q == nil || q.leave:
		c.mu.Unlock()
		return fmt.Errorf("reset %s: %w", p, ErrElsewhere)
	case q.wish != nil:
		c.mu.Unlock()
		return fmt.Errorf("reset %s: %w", p, ErrBusy)
	}
	q.wish = w
	if q.lane != nil && !q.gone {
		q.gone = true
		c.drain(ctx, []*partition{q})
	}
	c.mu.Unlock()
	c.signal()
	select {
	case <-w.done:
		return w.err
	case <-q.left:
		return fmt.Errorf("reset %s: %w", p, ErrElsewhere)
	case <-ctx.Done():
		c.mu.Lock()
		if q := c.parts[p]; q != nil && q.wish == w {
			q.wish = nil
		}
		c.mu.Unlock()
		return fmt.Errorf("reset %s: %w", p, ctx.Err())
	}
}

// wished is the reset that waits for a partition; nil if none does.
func (c *Connector) wished(p *partition) *wish {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.wish
}

// granted ends a reset.
func (c *Connector) granted(p *partition, w *wish, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.wish == w {
		p.wish = nil
	}
	w.err = err
	close(w.done)
}

// refuseResets ends the resets of partitions of which nothing is stored any more: only who knows how far the copy is can say where it goes on, and
// writes that into the store.
func (c *Connector) refuseResets(parts []*partition, why error) {
	for _, p := range parts {
		if w := c.wished(p); w != nil {
			c.deps.Events.Emit(events.Of(p.source, events.CheckpointMissing, events.Error, "a reset was refused: the stored position is gone").Because(why.Error()))
			c.granted(p, w, why)
		}
	}
}

// begin is the checkpoint from which a partition starts: the stored one, or the one that an operator's reset puts in its place.
func (c *Connector) begin(ctx context.Context, t *pair, p *partition, at offsets.Checkpoint) (offsets.Checkpoint, error) {
	w := c.wished(p)
	if w == nil {
		return c.continueFrom(ctx, t, at, p.anew)
	}
	from := operator.Epoch{ProducerID: at.ProducerID, Epoch: at.ProducerEpoch}
	if w.From != nil && *w.From != from { // an earlier try came so far
		c.granted(p, w, nil)
		return c.continueFrom(ctx, t, at, p.anew)
	}
	next, err := c.reset(ctx, t, at, w, from)
	var outside *RangeError
	var note *noteError
	switch {
	case err == nil:
		c.granted(p, w, nil)
		return next, nil
	case errors.As(err, &outside):
		c.deps.Events.Emit(events.Of(at.Partition, events.CheckpointOverridden, events.Warning, "a reset was refused: the position stays as it is").
			Range(at.SourceOffset, at.SourceOffset).Because(outside.Error()))
		c.granted(p, w, outside)
	case errors.As(err, &note):
		c.granted(p, w, note.err)
	default:
		return at, err // tried again
	}
	return c.continueFrom(ctx, t, at, p.anew)
}

// noteError is that of a Note.
type noteError struct{ err error }

func (e *noteError) Error() string { return "note a reset: " + e.err.Error() }
func (e *noteError) Unwrap() error { return e.err }

// reset stores the position that is wished for, in a new epoch: what was counted up to the old one says nothing of this one.
func (c *Connector) reset(ctx context.Context, t *pair, at offsets.Checkpoint, w *wish, from operator.Epoch) (offsets.Checkpoint, error) {
	next := at
	var err error
	if next.SourceOffset, err = c.place(ctx, t, at.Partition, w.To); err != nil {
		return at, err
	}
	number, _ := t.align.Target(at.Partition.Partition)
	if next.TargetOffset, err = c.targetEnd(ctx, t, route.Partition{Topic: t.topic.Target, Partition: number}); err != nil {
		return at, err
	}
	next.LeaderEpoch, next.Fingerprint, next.SourceTopicID, next.TargetTopicID = -1, c.fingerprint(t, at.Partition), t.source.ID, t.target.ID
	if next.ProducerID < 0 {
		if next.ProducerID, _, err = c.target.InitProducerID(ctx); err != nil {
			return at, fmt.Errorf("target: take a producer id: %w", err)
		}
		next.ProducerEpoch = -1 // the epoch before the first
	}
	if w.From == nil && w.Note != nil {
		if err := w.Note(ctx, from); err != nil {
			return at, &noteError{err}
		}
	}
	w.From = &from
	c.tellReset(at, next, w.To)
	if err := c.deps.Events.Flush(ctx); err != nil { // what excuses an offset is stored before it
		return at, storeError("store events", err)
	}
	return c.newEpoch(ctx, at, next)
}

// place finds a place in a partition's log, up to where a mirror can reach at the moment. *RangeError.
func (c *Connector) place(ctx context.Context, t *pair, p route.Partition, to operator.Place) (route.Offset, error) {
	broker, err := leader(t.source, p)
	if err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}
	find := func(at int64) (route.Offset, error) {
		list := func(ctx context.Context, leaders map[route.Partition]int32, at int64) (map[route.Partition]wire.ListedOffset, error) {
			return c.source.ListOffsets(ctx, leaders, at, c.cfg.Isolation == ReadCommitted)
		}
		found, err := startsAt(ctx, list, map[route.Partition]int32{p: broker}, at)
		if err == nil && found[p].Err != nil {
			err = fmt.Errorf("source: %w", found[p].Err)
		}
		return found[p].Offset, err
	}
	offset, exact := to.Offset()
	if !exact {
		return find(to.Timestamp())
	}
	start, err := find(wire.AtStart)
	if err != nil {
		return 0, err
	}
	end, err := find(wire.AtEnd)
	if err == nil && (offset < start || offset > end) {
		err = &RangeError{To: offset, Start: start, End: end}
	}
	return offset, err
}

// tellReset tells what a reset does, and what of it is copied a second time or not at all: once, however often it is tried and by how many wishes.
func (c *Connector) tellReset(was, now offsets.Checkpoint, to operator.Place) {
	p, from, at := was.Partition, was.SourceOffset, now.SourceOffset
	if !c.renewals.news(p, fmt.Sprintf("reset of %d/%d from %d to %d", was.ProducerID, was.ProducerEpoch, from, at)) {
		return
	}
	why := fmt.Sprintf("reset to %s; it was %d", to, from)
	c.deps.Events.Emit(events.Of(p, events.CheckpointOverridden, events.Warning, "an operator has set the position").Range(at, at).Because(why))
	switch {
	case from < 0: // nothing is copied yet, and it was not known where it would begin
	case at > from:
		c.deps.Events.Emit(events.Of(p, events.RangeSkipped, events.Error, "an operator has set the position behind what is not copied yet").
			Range(from, at-1).Because(why))
	case at < from:
		c.deps.Events.Emit(events.Of(p, events.DuplicatesPossible, events.Warning, "what was copied already is copied again").
			Range(at, from-1).Because(why))
	default:
		c.unsure(was, why)
	}
}
