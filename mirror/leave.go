package mirror

import "github.com/causeway-mirror/causeway/offsets"

// codeOtherTopic is the protocol's name for a topic whose id is not the one that was asked for: it was deleted and created anew.
const codeOtherTopic = "INCONSISTENT_TOPIC_ID"

// Stale says why the lane can't go on from its checkpoint, if it can't, and must be started anew in a new epoch.
func (l *Lane) Stale() Anew {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in.fault != nil && l.in.fault.Code == codeOtherTopic {
		return Anew{Cause: Recreated}
	}
	return l.pos.anew
}

// Refused says that the target has refused a batch for its size, and to which limit batches were split, in bytes, 0 for none. If the target has
// another limit by now, the lane must be started anew. size is that of the batch, if it is above the limit, else 0.
func (l *Lane) Refused() (limit, size int, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.plan.MaxBatchBytes, l.out.excess, l.refusedLocked()
}

func (l *Lane) refusedLocked() bool {
	f := l.out.fault
	return f != nil && (f.Code == codeTooLarge || f.Code == codeBeyondSegment)
}

// Halted says that an event told of a halt, and none yet that it is over.
func (l *Lane) Halted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pos.halted
}

// Doubted says, once, that the target or the store may know another owner's epoch: what is stored must be read again. The lane goes on
// trying meanwhile, because what the target says is a hint. The checkpoint is the one that the lane goes by.
func (l *Lane) Doubted() (c offsets.Checkpoint, doubted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	doubted, l.pos.doubted = l.pos.doubted, false
	return l.pos.checkpoint, doubted
}

// Forget takes a lane that could not be drained off its stream. Its answers may still come; what they acknowledge is not committed, so the next
// owner finds it out.
func (m *Mirror) Forget(l *Lane) {
	s := l.stream
	s.mu.Lock()
	if s.lanes[l.plan.Source] == l {
		delete(s.lanes, l.plan.Source)
	}
	delete(s.restless, l)
	s.mu.Unlock()
	m.metrics.forget(l.plan.Source.Topic, m.Lanes)
}
