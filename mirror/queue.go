package mirror

import (
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// entry is one batch of a lane, or a range of source offsets of which nothing is forwarded (records == 0).
type entry struct {
	batch   batch.Batch
	slab    *slab.Slab   // the batch lies in it and holds one of its references; nil for rewritten batches and for empty ranges
	charged int64        // bytes of a rewritten batch, charged to the budget
	first   route.Offset // source offset of its first record
	next    route.Offset // position after it
	seq     int32        // base sequence; set when it is made ready
	records int32
	epoch   int32 // the source's leader epoch right before next; -1 when not known
	raw     bool
	alone   bool      // one record, whose source offset first is for certain
	fetched time.Time // when its fetch was answered
	sent    time.Time // when it was last handed to the sink
}

// end is the sequence after the entry's last record.
func (e *entry) end() int32 { return offsets.Plus(e.seq, e.records) }

// release gives the entry's memory back and leaves it empty.
func release(e *entry, budget *slab.Budget) {
	if e.slab != nil {
		e.slab.Release()
	}
	if e.charged > 0 {
		budget.Return(e.charged)
	}
	e.batch, e.slab, e.charged = nil, nil, 0
}

// settle copies entries out of the answers in which they came, so that a lane which waits does not keep what others were sent with it: an answer of
// many megabytes may hold a little of a hundred lanes. None of the entries may be in flight.
func settle(es []entry) {
	for len(es) > 0 {
		from, n, size := es[0].slab, 1, len(es[0].batch)
		for ; n < len(es) && es[n].slab == from; n++ {
			size += len(es[n].batch)
		}
		if from != nil && 2*size <= len(from.Bytes()) { // else copying frees too little
			move(es[:n], from)
		}
		es = es[n:]
	}
}

// move gives entries that lie in one slab one of their own.
func move(es []entry, from *slab.Slab) {
	parts := make([][]byte, len(es))
	for i := range es {
		parts[i] = es[i].batch
	}
	own := from.Copy(parts...)
	own.Retain(len(es) - 1)
	rest := own.Bytes()
	for i := range es {
		n := len(parts[i])
		es[i].batch, es[i].slab, rest = batch.Batch(rest[:n:n]), own, rest[n:]
		from.Release()
	}
}

// ring is a queue addressed by ever growing numbers: head ≤ i < tail.
type ring[T any] struct {
	items      []T // Invariant: its length is zero or a power of two
	head, tail uint64
}

func (r *ring[T]) len() int { return int(r.tail - r.head) }

func (r *ring[T]) at(i uint64) *T { return &r.items[i&uint64(len(r.items)-1)] }

func (r *ring[T]) push(item T) {
	if r.len() == len(r.items) {
		r.grow()
	}
	r.tail++
	*r.at(r.tail - 1) = item
}

// pop removes the head and clears its place; what it held must have been released.
func (r *ring[T]) pop() T {
	var none T
	item := *r.at(r.head)
	*r.at(r.head) = none
	r.head++
	return item
}

func (r *ring[T]) grow() {
	bigger := make([]T, max(8, 2*len(r.items)))
	for i := r.head; i < r.tail; i++ {
		bigger[i&uint64(len(bigger)-1)] = *r.at(i)
	}
	r.items = bigger
}
