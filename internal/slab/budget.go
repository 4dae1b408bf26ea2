package slab

import (
	"context"
	"sync"
)

// Budget is the bound on the bytes that buffers may hold. Whoever wants memory reserves it first and waits for it.
type Budget struct {
	mu      sync.Mutex
	max     int64
	used    int64
	waiters []waiter // in order of arrival, so that a large reservation is not overtaken for ever by small ones
}

type waiter struct {
	n     int64
	ready chan struct{}
}

// NewBudget returns a budget of maxBytes.
func NewBudget(maxBytes int64) *Budget { return &Budget{max: maxBytes} }

// Max is the size of the budget in bytes.
func (b *Budget) Max() int64 { return b.max }

// Used is what is reserved now, in bytes. It may exceed Max by what Force took.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Reserve takes n bytes, in order of arrival, and waits until they are free or ctx ends. A reservation larger than the whole budget is
// granted when nothing else is reserved: otherwise one huge batch would stop its partition for ever.
func (b *Budget) Reserve(ctx context.Context, n int64) error {
	b.mu.Lock()
	if len(b.waiters) == 0 && b.fitsLocked(n) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	w := waiter{n: n, ready: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.waiters {
		if b.waiters[i].ready == w.ready {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.wakeLocked()
			return ctx.Err()
		}
	}
	b.used -= n // granted in the same moment
	b.wakeLocked()
	return ctx.Err()
}

// Force takes n bytes whether they are free or not: for a batch that is larger than what was asked for, which a broker sends whole.
func (b *Budget) Force(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
}

// Return gives n bytes back.
func (b *Budget) Return(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.used < 0 {
		panic("BUG: more memory returned than reserved")
	}
	b.wakeLocked()
}

func (b *Budget) fitsLocked(n int64) bool { return b.used+n <= b.max || b.used == 0 }

func (b *Budget) wakeLocked() {
	for len(b.waiters) > 0 && b.fitsLocked(b.waiters[0].n) {
		b.used += b.waiters[0].n
		close(b.waiters[0].ready)
		b.waiters = b.waiters[1:]
	}
}
