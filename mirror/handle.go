package mirror

import (
	"fmt"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// hand is what a stream's loop works with while it makes one lane's batches ready. It is reused from lane to lane.
type hand struct {
	in, out  []entry
	batches  []batch.Batch
	rewriter batch.Rewriter
	budget   *slab.Budget

	plan     *Plan
	aside    aside
	habit    *habit
	from     route.Offset // position before the first entry of in
	producer batch.Producer
}

// handle makes what came in ready: the lane's order is kept because one loop takes all that is there and puts it behind what is ready.
func (l *Lane) handle(h *hand) {
	l.lock()
	l.queued = false
	h.in = append(h.in[:0], l.in.entries...)
	clear(l.in.entries)
	l.in.entries = l.in.entries[:0]
	generation, merge := l.in.generation, l.behindLocked()
	c := &l.pos.checkpoint
	h.plan, h.habit, h.from, h.aside = &l.plan, &l.habit, l.in.handled, l.in.aside
	h.producer = batch.Producer{ID: c.ProducerID, Epoch: c.ProducerEpoch, Sequence: l.out.ready}
	l.mu.Unlock()

	before := total(h.in)
	defer h.letGo()
	fault := h.run(merge)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.in.held += total(h.out) - before
	if generation != l.in.generation {
		for i := range h.out {
			l.releaseLocked(&h.out[i])
		}
		return
	}
	if l.waitsLocked() {
		settle(h.out)
	}
	for i := range h.out {
		l.out.queue.push(h.out[i])
		l.in.handled, l.in.passed = h.out[i].next, h.out[i].epoch
	}
	l.out.ready = h.producer.Sequence
	if fault != nil {
		l.corruptLocked(fault)
	}
	l.readyLocked()
}

// letGo forgets the batches that it had in hand, which others hold now: each would keep the whole answer that it came in, of many megabytes, from the
// collector until the stream has something else to do.
func (h *hand) letGo() {
	clear(h.in)
	clear(h.out)
	clear(h.batches)
}

func total(es []entry) (bytes int64) {
	for i := range es {
		bytes += int64(len(es[i].batch))
	}
	return bytes
}

// readyLocked is called when there is more in the queue.
func (l *Lane) readyLocked() {
	if l.out.phase == walking {
		l.walkLocked()
	}
	l.trimLocked()
	l.passLocked()
	l.leaveOutLocked()
	if p := l.out.phase; p == open || p == certifying || p == asking {
		l.wake.Sink()
	}
	l.roomLeftLocked(l.stream.now())
}

// corruptLocked stops reading at a batch that can't be decoded; it is read again when the lane is retried.
func (l *Lane) corruptLocked(f *route.Fault) {
	l.rereadLocked()
	l.in.fault = f
	l.haltedLocked(f)
}

// rereadLocked forgets what was read and is not handled.
func (l *Lane) rereadLocked() {
	for i := range l.in.entries {
		l.releaseLocked(&l.in.entries[i])
	}
	l.in.entries = l.in.entries[:0]
	l.in.position, l.in.epoch, l.in.gap = l.in.handled, l.in.passed, 0
	l.in.generation++
}

// run turns in into out: ready entries, patched and numbered. It stops at the first batch that can't be decoded.
func (h *hand) run(merge int) *route.Fault {
	h.out = h.out[:0]
	for i := 0; i < len(h.in); {
		n := h.group(i, merge)
		if err := h.step(h.in[i : i+n]); err != nil {
			at := h.in[i].first
			for ; i < len(h.in); i++ {
				release(&h.in[i], h.budget)
			}
			return &route.Fault{Class: route.Corrupt, Code: "CORRUPT_MESSAGE", Err: fmt.Errorf("handle batch at offset %d: %w", at, err)}
		}
		h.from = h.in[i+n-1].next
		i += n
	}
	return nil
}

// group is how many entries from i on are made ready together: more than one only when small batches are merged.
func (h *hand) group(i, merge int) int {
	size := len(h.in[i].batch)
	n := 1
	for ; i+n < len(h.in) && size > 0 && !h.aside.touches(&h.in[i]); n++ {
		next := h.in[i+n].batch
		if len(next) == 0 || h.aside.touches(&h.in[i+n]) || size+len(next) > merge || next.AppendTime() != h.in[i].batch.AppendTime() {
			break
		}
		size += len(next)
	}
	return n
}

// step decides, for one entry or for some to be merged, between raw and rewritten. The first rule that fits wins; forwarding a thinned batch
// raw would corrupt offsets on some brokers, so these checks are a safety rule and no optimisation.
func (h *hand) step(es []entry) error {
	e := &es[0]
	b := e.batch
	o := batch.Options{From: h.from, MaxBytes: h.plan.MaxBatchBytes, Map: h.plan.Records}
	switch {
	case len(b) == 0:
		h.skip(e.first, e)
		return nil
	case h.aside.touches(e):
		h.aside.cut(e, &o)
	case len(es) > 1, b.Magic() < 2, b.BaseOffset() < h.from, !b.Dense():
	case b.AppendTime() && h.plan.KeepAppendTime:
	case b.Codec() == batch.Zstd && h.plan.NoZstd:
	case h.plan.MaxBatchBytes > 0 && len(b) > h.plan.MaxBatchBytes:
	case h.plan.Records != nil && h.habit.changes():
	case h.plan.Records != nil:
		changed, _, err := h.rewriter.Scan(b, h.plan.Records)
		if err != nil {
			return err
		}
		if h.habit.note(changed); !changed {
			h.raw(e)
			return nil
		}
	default:
		h.raw(e)
		return nil
	}
	o.AppendTime = b.AppendTime() && h.plan.KeepAppendTime
	if b.Codec() == batch.Zstd && h.plan.NoZstd {
		lz4 := batch.Lz4
		o.Codec = &lz4
	}
	return h.rewrite(es, o)
}

// habit remembers whether a lane's handler changes about every batch. To look first whether it changes one would then only decode all twice.
type habit struct{ changed, passed int }

const (
	habitAfter = 8  // batches in a row that were changed
	habitLook  = 64 // of which one is looked at again
)

// changes says that the next batch is rewritten without a look.
func (h *habit) changes() bool {
	if h.changed < habitAfter {
		return false
	}
	h.passed++
	return h.passed%habitLook != 0
}

func (h *habit) note(changed bool) {
	if !changed {
		h.changed = 0
		return
	}
	h.changed++
}

// raw passes a batch on as it is but for its header.
func (h *hand) raw(e *entry) {
	e.raw = true
	h.ready(*e)
}

func (h *hand) ready(e entry) {
	e.records = e.batch.Records()
	e.alone = e.records == 1
	e.seq = h.producer.Sequence
	e.batch.Patch(h.producer)
	h.producer.Sequence = offsets.Plus(e.seq, e.records)
	h.out = append(h.out, e)
}

// skip forwards nothing from first to the end of last.
func (h *hand) skip(first route.Offset, last *entry) {
	if n := len(h.out); n > 0 && h.out[n-1].records == 0 {
		h.out[n-1].next, h.out[n-1].epoch = last.next, last.epoch
		return
	}
	h.out = append(h.out, entry{first: first, next: last.next, epoch: last.epoch, seq: h.producer.Sequence})
}

func (h *hand) rewrite(es []entry, o batch.Options) error {
	h.batches = h.batches[:0]
	for i := range es {
		h.batches = append(h.batches, es[i].batch)
	}
	pieces, err := h.rewriter.Rewrite(h.batches, o)
	if err != nil {
		return err
	}
	last, fetched, from := &es[len(es)-1], es[0].fetched, 0
	if len(pieces) == 0 {
		h.skip(es[0].first, last)
	}
	for i, p := range pieces {
		for es[from].next < p.Next && from < len(es)-1 {
			from++ // its last record is of a later batch
		}
		e := entry{batch: p.Batch, first: p.First, next: p.Next, epoch: es[from].epoch, fetched: fetched, charged: int64(len(p.Batch))}
		if i == len(pieces)-1 {
			e.next, e.epoch = last.next, last.epoch
		}
		h.budget.Force(e.charged)
		h.ready(e)
	}
	for i := range es {
		release(&es[i], h.budget)
	}
	return nil
}
