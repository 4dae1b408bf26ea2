package spill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Queue is one partition's items that were put and whose take was not committed. Its methods may be called by many goroutines.
type Queue struct {
	store     *Store
	partition route.Partition
	log       *log

	putting sync.Mutex    // one put is committed at a time; taken before mu
	room    chan struct{} // memory became free, or the queue was closed; the put that waits takes it
	filled  chan struct{} // there is more to take, or the queue was closed

	mu     sync.Mutex
	limits Limits
	order  order
	memory []Item // of the order's cached and fresh items, in order
	slots  int64  // that they take

	overflowing bool // puts go to disk at once
	told        bool // Started was told, Drained not yet
	closed      bool
	committed   route.Offset          // position after the last item whose take was committed
	next        route.Offset          // position after the last item
	take        *Take                 // the one that is open
	lost        map[route.Offset]bool // damage that is counted already, by its first position
	count       counters
}

// order says where the items are, from the oldest on: cached ones in memory and on disk, then some on disk alone, then fresh ones in memory
// alone. There are never more than these three runs, since an overflow begins with writing what is fresh.
type order struct {
	cached, disk, fresh int
}

func (o order) all() int { return o.cached + o.disk + o.fresh }

// place says where the item with number i is: in memory, with its index there, or on disk.
func (o order) place(i int) (index int, inMemory bool) {
	switch {
	case i < o.cached:
		return i, true
	case i < o.cached+o.disk:
		return 0, false
	default:
		return i - o.disk, true
	}
}

// pop forgets the oldest item and says whether it was in memory.
func (o *order) pop() (inMemory bool) {
	switch {
	case o.cached > 0:
		o.cached--
		return true
	case o.disk > 0:
		o.disk--
		return false
	default:
		o.fresh--
		return true
	}
}

type counters struct {
	puts, putItems, putRollbacks, takes, takenItems, takeRollbacks, lost uint64
	largestMemory                                                        int
}

// Stats is a queue's figures as of one moment.
type Stats struct {
	Items       int          // put, and their take not committed
	Memory      int          // of these in memory
	Overflow    int          // of these on disk; some may be in memory as well
	Fresh       int          // of these in memory alone
	DiskBytes   int64        // of the queue's files
	Overflowing bool         // puts go to disk
	Committed   route.Offset // position after the last item whose take was committed
	Next        route.Offset // position after the last item
	Safe        route.Offset // position up to which what was written to disk is synced; route.NoOffset if nothing is

	Puts, PutItems, PutRollbacks     uint64 // transactions that were committed, items in them, transactions that were not
	Takes, TakenItems, TakeRollbacks uint64
	Lost                             uint64 // items that were damaged on disk
	LargestMemory                    int    // most items in memory that there were
}

// Stats returns the figures.
func (q *Queue) Stats() Stats {
	_, bytes, safe := q.log.figures()
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.count
	return Stats{
		Items: q.order.all(), Memory: len(q.memory), Overflow: q.order.cached + q.order.disk, Fresh: q.order.fresh, DiskBytes: bytes,
		Overflowing: q.overflowing, Committed: q.committed, Next: q.next, Safe: safe,
		Puts: c.puts, PutItems: c.putItems, PutRollbacks: c.putRollbacks, Takes: c.takes, TakenItems: c.takenItems, TakeRollbacks: c.takeRollbacks,
		Lost: c.lost, LargestMemory: c.largestMemory,
	}
}

// Last is the newest item on disk, with a reference that is the caller's. ErrEmpty: there is none, or it is damaged.
func (q *Queue) Last() (Item, error) {
	_, next := q.log.extent()
	if next <= 0 {
		return Item{}, ErrEmpty
	}
	r := reader{log: q.log, alloc: q.store.deps.Alloc}
	defer r.close()
	err := r.seek(next - 1)
	var item Item
	if err == nil {
		item, err = r.read()
	}
	if c := (*Corruption)(nil); errors.As(err, &c) || errors.Is(err, io.EOF) {
		return Item{}, ErrEmpty
	}
	return item, err
}

// Partition is whose queue it is.
func (q *Queue) Partition() route.Partition { return q.partition }

// Filled yields a value when there is more to take than before, and when the queue is closed.
func (q *Queue) Filled() <-chan struct{} { return q.filled }

// Reconfigure changes the limits. What is held stays, also where it is more than the new limits allow; it goes down as it is taken.
func (q *Queue) Reconfigure(l Limits) error {
	if err := l.Validate(); err != nil {
		return err
	}
	q.mu.Lock()
	q.limits, q.slots = l, 0
	for _, i := range q.memory {
		q.slots += l.slots(len(i.Data))
	}
	q.calmLocked()
	q.mu.Unlock()
	signal(q.room)
	return nil
}

// Trim removes the files of which every position lies before at, which is one from where the owner would go on after a crash: a stored
// checkpoint.
func (q *Queue) Trim(at route.Offset) error {
	q.mu.Lock()
	at = min(at, q.committed)
	q.mu.Unlock()
	if err := q.log.trim(at); err != nil {
		return fmt.Errorf("trim the spill of %s: %w", q.partition, err)
	}
	return nil
}

// Close ends the queue and gives back its memory; what is on disk stays there, synced. Transactions that are open end.
func (q *Queue) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	t := q.take
	q.mu.Unlock()
	signal(q.room)
	signal(q.filled)
	if t != nil {
		t.Rollback()
	}
	q.putting.Lock()
	defer q.putting.Unlock()
	q.mu.Lock()
	for _, i := range q.memory {
		i.release()
	}
	q.memory, q.slots = nil, 0
	q.order = order{disk: q.order.cached + q.order.disk}
	q.mu.Unlock()
	err := errors.Join(q.log.sync(), q.log.close())
	q.store.leave(q)
	return err
}

// calmLocked ends the overflow if everything that is on disk is in memory as well and enough of that is free: what is put into memory before
// would be lost with a kill, and the source might not have it any more when its turn comes.
func (q *Queue) calmLocked() {
	if q.overflowing && q.order.disk == 0 && q.limits.relaxed(len(q.memory), q.slots) {
		q.overflowing = false
	}
}

// drainedLocked reports, once an overflow, that nothing of it is left.
func (q *Queue) drainedLocked() bool {
	if !q.told || q.overflowing || q.order.cached+q.order.disk > 0 {
		return false
	}
	q.told = false
	return true
}

// pushLocked puts items into memory.
func (q *Queue) pushLocked(items []Item) {
	for _, i := range items {
		q.slots += q.limits.slots(len(i.Data))
	}
	q.memory = append(q.memory, items...)
	q.order.fresh += len(items)
	q.count.largestMemory = max(q.count.largestMemory, len(q.memory))
}

// dropLocked gives back n items of the memory from index i on.
func (q *Queue) dropLocked(i, n int) {
	for _, item := range q.memory[i : i+n] {
		q.slots -= q.limits.slots(len(item.Data))
		item.release()
	}
	if i == 0 {
		clear(q.memory[:n])
		q.memory = q.memory[n:]
		return
	}
	q.memory = append(q.memory[:i], q.memory[i+n:]...)
	clear(q.memory[len(q.memory) : len(q.memory)+n])
}

func (q *Queue) tell(kind Kind, first, next route.Offset, path, reason string) {
	q.store.tell(Notice{Kind: kind, Partition: q.partition, First: first, Next: next, Path: path, Reason: reason})
}

// signal lets whoever waits look again.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// await waits for a signal, the end of a timer, or the caller's end, which is its error.
func await(ctx context.Context, c <-chan struct{}, t *time.Timer) (expired bool, err error) {
	select {
	case <-c:
		return false, nil
	case <-t.C:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// stop stops a timer that may never have been started.
func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
