package slab

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	minClassBits = 12 // 4 KiB
	stepsPerBit  = 4  // classes per doubling: at most a fifth of a buffer is waste
	maxClass     = (31 - minClassBits) * stepsPerBit
)

// Slab is one buffer from a Pool. Whoever holds a reference may read it; the last Release gives it back.
type Slab struct {
	pool     *Pool
	class    int
	reserved int64
	refs     atomic.Int32
	full     []byte
	n        int
}

// Bytes is the buffer, of the length that was asked for. It must not be used after the caller's Release.
func (s *Slab) Bytes() []byte { return s.full[:s.n] }

// Retain adds n references.
func (s *Slab) Retain(n int) {
	if s.refs.Add(int32(n)) <= int32(n) && n > 0 {
		panic("BUG: slab retained after its last release")
	}
}

// Copy returns a slab with one reference that holds parts of this one, one behind the other. It is counted at once, whether the budget has room
// or not: whoever copies gives up a reference to more.
func (s *Slab) Copy(parts ...[]byte) *Slab {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	c := s.pool.Get(n, 0)
	at := c.full
	for _, p := range parts {
		at = at[copy(at, p):]
	}
	return c
}

// Release drops one reference; the last one returns the buffer to its pool and its bytes to the budget.
func (s *Slab) Release() {
	switch n := s.refs.Add(-1); {
	case n > 0:
	case n < 0:
		panic("BUG: slab released more often than retained")
	default:
		s.pool.put(s)
	}
}

// Pool hands out slabs. Idle buffers are kept up to a bound; what is beyond goes to the garbage collector.
type Pool struct {
	budget  *Budget
	maxIdle int64
	poison  bool

	mu        sync.Mutex
	idleBytes int64
	idle      [maxClass + 1][]*Slab
}

// NewPool returns a pool whose slabs are counted against budget; at most maxIdle bytes are kept unused for the next caller.
func NewPool(budget *Budget, maxIdle int64) *Pool { return &Pool{budget: budget, maxIdle: maxIdle} }

// Poison makes released buffers unreadable by overwriting them, so that a test finds whoever still uses one.
func (p *Pool) Poison() *Pool {
	p.poison = true
	return p
}

// Budget is what the pool's slabs are counted against.
func (p *Pool) Budget() *Budget { return p.budget }

// Get returns a slab of n bytes with one reference. It takes over reserved bytes that the caller holds of the budget: the difference to
// n is returned or, if the answer was larger than asked for, forced.
func (p *Pool) Get(n int, reserved int64) *Slab {
	switch diff := int64(n) - reserved; {
	case diff > 0:
		p.budget.Force(diff)
	case diff < 0:
		p.budget.Return(-diff)
	}
	c := class(n)
	p.mu.Lock()
	var s *Slab
	if l := len(p.idle[c]); l > 0 {
		s = p.idle[c][l-1]
		p.idle[c][l-1] = nil
		p.idle[c] = p.idle[c][:l-1]
		p.idleBytes -= int64(len(s.full))
	}
	p.mu.Unlock()
	if s == nil {
		s = &Slab{pool: p, class: c, full: make([]byte, size(c))}
	}
	s.n, s.reserved = n, int64(n)
	s.refs.Store(1)
	return s
}

func (p *Pool) put(s *Slab) {
	if p.poison {
		for i := range s.full {
			s.full[i] = 0xdb
		}
	}
	reserved := s.reserved
	p.mu.Lock()
	if p.idleBytes+int64(len(s.full)) <= p.maxIdle {
		p.idle[s.class] = append(p.idle[s.class], s)
		p.idleBytes += int64(len(s.full))
	}
	p.mu.Unlock()
	p.budget.Return(reserved)
}

// class is the smallest class whose size holds n bytes.
func class(n int) int {
	if n <= 1<<minClassBits {
		return 0
	}
	top := bits.Len(uint(n-1)) - 1 // 2^top ≤ n-1
	step := (n - 1) >> (top - 2) & (stepsPerBit - 1)
	return min((top-minClassBits)*stepsPerBit+step+1, maxClass)
}

// size is the number of bytes of a class's buffers.
func size(c int) int {
	bit, step := c/stepsPerBit+minClassBits, c%stepsPerBit
	return 1<<bit + step<<(bit-2)
}
