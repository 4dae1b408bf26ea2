package producer

import (
	"sync/atomic"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Lane is the sending side of one partition, as the producer sees it. Its methods don't block.
type Lane interface {
	// Next is the size in bytes of the batch that Take would hand out; 0 = none now; negative = the lane wants an Inquiry first.
	Next() int
	// Take hands out the next batch, nil if there is none after all; all: it must go with acks=all. Each batch taken is answered once.
	Take() (b batch.Batch, all bool)
	// SentAll tells that the batch taken last went with acks=all although the lane did not ask for it.
	SentAll()
	// Answer hands back the answer to the oldest unanswered batch: the target offset of its first record, -1 if unknown, or the fault.
	Answer(all bool, base route.Offset, f *route.Fault)
	// Inquiry is what is to be asked now, or, if it is not due yet, when.
	Inquiry() (q offsets.Inquiry, due time.Time)
	// Hint answers an Inquiry.
	Hint(h offsets.Hint, f *route.Fault)
}

// Slot is a lane's place in the producer.
type Slot struct {
	producer *Producer
	target   route.Partition
	company  *atomic.Int32 // slots of this target partition, this one included
	lane     Lane

	queued atomic.Bool // in its link's queue, or in the control loop's list
	gone   atomic.Bool
	link   atomic.Pointer[link]

	private atomic.Bool // goes over a connection of its own, since its answers were late
	prompt  atomic.Bool // while it does: the last answer came in time, and the lane has it

	flying int    // unanswered batches; belongs to the link and is guarded by its mutex
	read   found  // of the target's log; belongs to the inquiry under way
	build  uint64 // the request that a batch was last taken for; belongs to the sender that took the slot from its queue
}

// Wake says that the lane may have something to send or to ask. It neither blocks nor calls the lane, so it may be called with the lane's
// lock held.
func (s *Slot) Wake() {
	if s.lane == nil || s.gone.Load() || s.queued.Swap(true) {
		return
	}
	if l := s.link.Load(); l != nil {
		l.push(s)
		return
	}
	s.producer.ask(s)
}
