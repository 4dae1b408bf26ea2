package mirror

import (
	"time"

	"github.com/causeway-mirror/causeway/batch"
)

// A broker works one connection's requests through replication one after the other, so a connection with replicas behind it takes some
// hundred to two thousand requests a second, however small they are. Without replicas it takes a few thousand, and what each costs outweighs
// the bytes of the smallest batches. Many lanes fill a request together; one or two lanes of small batches can't, and stay behind. Such a lane
// merges batches by rewriting, and is raw again as soon as it has caught up.
const (
	mergeLanes     = 4    // more lanes than these with a backlog fill their requests raw
	mergeBacklog   = 64   // batches that wait to be sent or to be answered: fewer are no backlog but a pipeline
	mergeAhead     = 4    // merged batches that a merging lane may hold
	mergeBatchRate = 2500 // batches/s below which it is the broker's round that limits, not the bytes
	mergeBatchSize = 128 << 10
	mergeTinyRate  = 10000 // the same without replicas, for batches below
	mergeTinySize  = 16 << 10
	// mergeFar is the shortest time to an acknowledgement from which on batches are merged without replicas, too. Nearer by they stay raw, at a
	// third of the CPU time.
	mergeFar = 20 * time.Millisecond
)

// requestBound says whether it is the number of batches that limits a lane with a backlog, not their bytes. first is one of those that wait.
func (m *meter) requestBound(replicated bool, first batch.Batch) bool {
	if m.batchRate == 0 {
		return false
	}
	size := m.rate / m.batchRate
	if replicated && m.batchRate < mergeBatchRate && size < mergeBatchSize {
		return true
	}
	slow := len(first) > 0 && first.Codec() == batch.Gzip // to compress it anew takes longer than to send it
	return m.minAck >= mergeFar && m.batchRate < mergeTinyRate && size < mergeTinySize && !slow
}

// behindLocked is the size up to which batches are merged now; 0 = not at all.
func (l *Lane) behindLocked() int {
	if l.plan.Merge == 0 {
		return 0
	}
	waiting := l.out.queue.len() + len(l.in.entries)
	l.backlogLocked(l.out.phase == open && (waiting >= mergeBacklog || l.meter.merging && l.in.held >= int64(l.plan.Merge)))
	var first batch.Batch
	if len(l.in.entries) > 0 {
		first = l.in.entries[0].batch
	}
	l.meter.merging = l.backlog && l.stream.backlogs.Load() <= mergeLanes &&
		(l.meter.merging || l.meter.requestBound(l.plan.Replicated, first))
	if !l.meter.merging {
		return 0
	}
	return l.plan.Merge
}

// backlogLocked counts the lane among those with a backlog, or not.
func (l *Lane) backlogLocked(now bool) {
	if now == l.backlog {
		return
	}
	l.backlog = now
	if now {
		l.stream.backlogs.Add(1)
	} else {
		l.stream.backlogs.Add(-1)
	}
}
