package spill

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Take is a transaction that takes items out. Commit may be called while Next waits; otherwise it is one goroutine's.
type Take struct {
	q      *Queue
	moving sync.Mutex // what moves the cursor; taken before q.mu
	reader reader     // of moving

	// of q.mu
	held  []Item       // taken and not committed, each with a reference
	at    route.Offset // position of the next item
	ended bool
}

// Take begins a transaction at the oldest item. Only one may be open: ErrBusy. Also ErrClosed.
func (q *Queue) Take() (*Take, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, ErrClosed
	case q.take != nil:
		return nil, ErrBusy
	}
	q.take = &Take{q: q, at: q.committed, reader: reader{log: q.log, alloc: q.store.deps.Alloc}}
	return q.take, nil
}

// Next takes the next item, and waits that long for one if there is none. The item is the caller's to read until it is committed or rolled back.
// Errors: ErrEmpty; *Corruption, behind which the next call goes on; ErrClosed, ErrEnded, or the disk's.
func (t *Take) Next(wait time.Duration) (Item, error) {
	var expires *time.Timer
	defer func() { stop(expires) }()
	for {
		item, err := t.next()
		if !errors.Is(err, ErrEmpty) || wait <= 0 {
			return item, err
		}
		if expires == nil {
			expires = time.NewTimer(wait)
		}
		select {
		case <-t.q.filled:
		case <-expires.C:
			return t.next()
		}
	}
}

func (t *Take) next() (Item, error) {
	t.moving.Lock()
	defer t.moving.Unlock()
	q := t.q
	q.mu.Lock()
	number := len(t.held)
	switch {
	case t.ended && q.closed:
		q.mu.Unlock()
		return Item{}, ErrClosed
	case t.ended:
		q.mu.Unlock()
		return Item{}, ErrEnded
	case number >= q.order.all():
		q.mu.Unlock()
		return Item{}, ErrEmpty
	}
	if i, inMemory := q.order.place(number); inMemory {
		item := q.memory[i]
		item.retain()
		t.takenLocked(item)
		q.mu.Unlock()
		return item, nil
	}
	at := t.at
	q.mu.Unlock()
	return t.nextOnDisk(at)
}

func (t *Take) takenLocked(item Item) {
	t.held = append(t.held, item)
	t.at = item.Next
}

// nextOnDisk reads the item at a position. Nothing but a commit can happen meanwhile, which changes neither that nor which item it is.
func (t *Take) nextOnDisk(at route.Offset) (Item, error) {
	var item Item
	var err error
	if t.reader.place() != at {
		err = t.reader.seek(at)
	}
	if err == nil {
		item, err = t.reader.read()
	}
	var c *Corruption
	if errors.As(err, &c) {
		t.lost(c)
		return Item{}, c
	}
	if errors.Is(err, io.EOF) { // what was left of the queue was the damage
		return Item{}, ErrEmpty
	}
	if err != nil {
		return Item{}, err
	}
	t.q.mu.Lock()
	t.takenLocked(item)
	t.q.mu.Unlock()
	return item, nil
}

// lost goes behind damage, and tells of it the first time.
func (t *Take) lost(c *Corruption) {
	q := t.q
	q.mu.Lock()
	t.at = c.Next
	known := q.lost[c.First]
	if !known {
		q.lost[c.First] = true
		q.order.disk -= int(c.items)
		q.count.lost += uint64(c.items)
	}
	q.mu.Unlock()
	if !known {
		q.store.metrics.lost.Add(float64(c.items))
		q.tell(Corrupt, c.First, c.Next, c.Path, c.Reason)
	}
}

// Drop gives back the memory of what was taken from disk and is not committed. It stays taken: who needs it again rolls back.
func (t *Take) Drop() {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	for i := len(t.held) - 1; i >= t.q.order.cached; i-- {
		if t.held[i].Hold == nil && t.held[i].Data == nil {
			break // dropped before, with all before it
		}
		if _, inMemory := t.q.order.place(i); !inMemory {
			t.held[i].release()
			t.held[i].Data, t.held[i].Hold = nil, nil
		}
	}
}

// Taken is how many items were taken and neither committed nor rolled back.
func (t *Take) Taken() int {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return len(t.held)
}

// Commit ends the take of the first n items: they leave the queue, and their memory is free. The transaction stays open for the others.
func (t *Take) Commit(n int) error {
	q := t.q
	q.mu.Lock()
	if t.ended {
		q.mu.Unlock()
		return ErrEnded
	}
	if n < 0 || n > len(t.held) {
		q.mu.Unlock()
		panic("BUG: more items committed than were taken")
	}
	for _, item := range t.held[:n] {
		if q.order.pop() {
			q.dropLocked(0, 1)
		}
		item.release()
		q.committed = item.Next
	}
	clear(t.held[:n])
	t.held = t.held[n:]
	q.count.takenItems += uint64(n)
	q.calmLocked()
	committed, drained := q.committed, q.drainedLocked()
	q.mu.Unlock()
	q.store.metrics.takenItems.Add(float64(n))
	signal(q.room)
	if drained {
		q.tell(Drained, route.NoOffset, committed, "", "")
	}
	return nil
}

// End ends the transaction with the commit of everything that was taken.
func (t *Take) End() error {
	t.moving.Lock()
	defer t.moving.Unlock()
	if err := t.Commit(t.Taken()); err != nil {
		return err
	}
	t.close()
	t.q.mu.Lock()
	t.q.count.takes++
	t.q.mu.Unlock()
	return nil
}

// Rollback ends the transaction; what was taken and not committed is the next one's, in the same order. It does nothing to one that has ended.
func (t *Take) Rollback() {
	t.moving.Lock()
	defer t.moving.Unlock()
	if !t.close() {
		return
	}
	t.q.mu.Lock()
	t.q.count.takeRollbacks++
	t.q.mu.Unlock()
	t.q.store.metrics.takeRollbacks.Inc()
	signal(t.q.filled)
}

// close gives everything back; false if the transaction had ended before. The caller holds moving.
func (t *Take) close() bool {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.ended {
		return false
	}
	t.reader.close()
	for _, item := range t.held {
		item.release()
	}
	t.held, t.ended, t.q.take = nil, true, nil
	return true
}
