package spill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Put is a transaction that adds items. It is one goroutine's.
type Put struct {
	q     *Queue
	items []Item
	ended bool
}

// Put begins a transaction. Any number may be open; they are stored in the order of their commits.
func (q *Queue) Put() *Put { return &Put{q: q} }

// Add adds an item, with one reference that the transaction takes over.
func (p *Put) Add(i Item) { p.items = append(p.items, i) }

// Commit stores the items, all or none: in memory if there is room within OverflowTimeout and the queue doesn't overflow, else on disk. After an
// error the transaction is as before and may be tried again or rolled back: ErrFull, ErrTooLarge, ErrNotAdjoining, ErrClosed, ErrEnded, ctx's, or
// the disk's.
func (p *Put) Commit(ctx context.Context) error {
	if p.ended {
		return ErrEnded
	}
	if err := p.q.commitPut(ctx, p.items); err != nil {
		return err
	}
	p.ended, p.items = true, nil
	return nil
}

// Rollback gives the items back. It does nothing to a transaction that has ended.
func (p *Put) Rollback() {
	if p.ended {
		return
	}
	for _, i := range p.items {
		i.release()
	}
	p.ended, p.items = true, nil
	p.q.mu.Lock()
	p.q.count.putRollbacks++
	p.q.mu.Unlock()
	p.q.store.metrics.putRollbacks.Inc()
}

func (q *Queue) commitPut(ctx context.Context, items []Item) error {
	q.putting.Lock()
	defer q.putting.Unlock()
	q.mu.Lock()
	next := q.next
	q.mu.Unlock()
	for _, i := range items {
		if i.First != next || i.Next <= i.First {
			return fmt.Errorf("%w: %d to %d where %d is next", ErrNotAdjoining, i.First, i.Next-1, next)
		}
		next = i.Next
	}
	if len(items) == 0 {
		return nil
	}
	stored, err := q.toMemory(ctx, items)
	if err == nil && !stored {
		err = q.toDisk(ctx, items)
	}
	if err != nil {
		return err
	}
	q.mu.Lock()
	q.next = next
	q.count.puts++
	q.count.putItems += uint64(len(items))
	q.mu.Unlock()
	q.store.metrics.putItems.Add(float64(len(items)))
	signal(q.filled)
	return nil
}

// toMemory waits for room in memory; false means that the items are to go to disk.
func (q *Queue) toMemory(ctx context.Context, items []Item) (stored bool, err error) {
	var expires *time.Timer
	defer func() { stop(expires) }()
	for {
		q.mu.Lock()
		l := q.limits
		slots := int64(0)
		for _, i := range items {
			slots += l.slots(len(i.Data))
		}
		disk := l.OverflowCapacity > 0
		switch {
		case q.closed:
			q.mu.Unlock()
			return false, ErrClosed
		case disk && (q.overflowing || !l.holds(len(items), slots)):
			q.mu.Unlock()
			return false, nil
		case !l.holds(len(items), slots):
			q.mu.Unlock()
			return false, fmt.Errorf("%w: %d items of %d slots, and nothing may go to disk", ErrTooLarge, len(items), slots)
		case l.holds(len(q.memory)+len(items), q.slots+slots):
			q.pushLocked(items)
			q.mu.Unlock()
			return true, nil
		}
		q.mu.Unlock()
		if expires == nil {
			expires = time.NewTimer(l.OverflowTimeout)
		}
		expired, err := await(ctx, q.room, expires)
		switch {
		case err != nil:
			return false, err
		case expired && disk:
			return false, nil
		case expired:
			return false, fmt.Errorf("%w in memory, and nothing may go to disk", ErrFull)
		}
	}
}

// toDisk writes the items, and tries it a second time after OverflowTimeout if there was no room.
func (q *Queue) toDisk(ctx context.Context, items []Item) error {
	err := q.write(ctx, items)
	if !errors.Is(err, ErrFull) {
		return err
	}
	q.mu.Lock()
	timer := time.NewTimer(q.limits.OverflowTimeout)
	q.mu.Unlock()
	defer timer.Stop()
	if _, err := await(ctx, q.room, timer); err != nil {
		return err
	}
	return q.write(ctx, items)
}

// write puts items on disk, behind everything that is in memory alone.
func (q *Queue) write(ctx context.Context, items []Item) error {
	if err := q.writeFresh(ctx); err != nil {
		return err
	}
	if err := q.append(ctx, items); err != nil {
		return err
	}
	q.mu.Lock()
	q.order.disk += len(items)
	q.mu.Unlock()
	for _, i := range items {
		i.release()
	}
	return nil
}

// atOnce is how many bytes of what is in memory go into one frame.
const atOnce = 1 << 20

// writeFresh writes what is in memory alone. It stays there, as a cache, if nothing before it is on disk alone.
func (q *Queue) writeFresh(ctx context.Context) error {
	for {
		q.mu.Lock()
		chunk := chunkOf(q.memory[len(q.memory)-q.order.fresh:])
		for _, i := range chunk {
			i.retain()
		}
		q.mu.Unlock()
		if len(chunk) == 0 {
			return nil
		}
		err := q.append(ctx, chunk)
		q.mu.Lock()
		if err == nil {
			q.writtenLocked(chunk)
		}
		q.mu.Unlock()
		for _, i := range chunk {
			i.release()
		}
		if err != nil {
			return err
		}
	}
}

// chunkOf copies the first items, up to about atOnce bytes.
func chunkOf(items []Item) []Item {
	n, bytes := 0, 0
	for n < len(items) && (n == 0 || bytes+len(items[n].Data) <= atOnce) {
		bytes += len(items[n].Data)
		n++
	}
	return slices.Clone(items[:n])
}

// writtenLocked moves the first fresh items that are still there to those on disk.
func (q *Queue) writtenLocked(chunk []Item) {
	n := 0
	for _, i := range chunk {
		if i.Next > q.committed { // taken and committed meanwhile
			n++
		}
	}
	at := len(q.memory) - q.order.fresh
	q.order.fresh -= n
	if q.order.disk == 0 {
		q.order.cached += n
		return
	}
	q.order.disk += n
	q.dropLocked(at, n)
}

// append writes one frame, and begins the overflow with it if there is none.
func (q *Queue) append(ctx context.Context, items []Item) error {
	first := items[0].First
	q.mu.Lock()
	closed, committed := q.closed, q.committed
	full := int64(q.order.cached+q.order.disk+len(items)) > q.limits.OverflowCapacity
	q.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case full:
		return fmt.Errorf("%w: overflow_capacity is reached", ErrFull)
	}
	if _, next := q.log.extent(); next != first {
		// What comes between was in memory alone and is committed. A log with a hole could not be told from a damaged one, so it begins anew, behind
		// a checkpoint.
		if err := q.settle(ctx, committed); err != nil {
			return err
		}
		if err := q.log.trim(first); err != nil {
			return fmt.Errorf("trim the spill of %s: %w", q.partition, err)
		}
	}
	if err := q.log.append(items, q.store.cfg.SegmentBytes); err != nil {
		return fmt.Errorf("spill %s: %w", q.partition, err)
	}
	q.mu.Lock()
	begun := !q.told
	q.overflowing, q.told = true, true
	q.mu.Unlock()
	if begun {
		q.tell(Started, first, route.NoOffset, "", "")
	}
	return nil
}

// settle has the owner store its checkpoint at or behind a position.
func (q *Queue) settle(ctx context.Context, at route.Offset) error {
	if q.store.deps.Settle == nil {
		return nil
	}
	if err := q.store.deps.Settle(ctx, q.partition, at); err != nil {
		return fmt.Errorf("store the position of %s before it spills: %w", q.partition, err)
	}
	return nil
}
