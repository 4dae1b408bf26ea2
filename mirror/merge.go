package mirror

// A broker works one connection's requests through replication one after the other, so a connection with replicas behind it takes some
// hundred to two thousand requests a second, however small they are. Many lanes fill a request together; one or two lanes of small batches
// can't, and stay behind. Such a lane merges batches by rewriting, and is raw again as soon as it has caught up.
const (
	mergeLanes     = 4    // more lanes than these with a backlog fill their requests raw
	mergeBacklog   = 64   // batches that wait to be sent or to be answered: fewer are no backlog but a pipeline
	mergeAhead     = 4    // merged batches that a merging lane may hold
	mergeBatchRate = 2500 // batches/s below which it is the broker's round that limits, not the bytes
	mergeBatchSize = 128 << 10
)

// behindLocked is the size up to which batches are merged now; 0 = not at all.
func (l *Lane) behindLocked() int {
	if l.plan.Merge == 0 {
		return 0
	}
	waiting := l.out.queue.len() + len(l.in.entries)
	l.backlogLocked(l.out.phase == open && (waiting >= mergeBacklog || l.meter.merging && l.in.held >= int64(l.plan.Merge)))
	small := l.meter.batchRate > 0 && l.meter.batchRate < mergeBatchRate && l.meter.rate < mergeBatchSize*l.meter.batchRate
	l.meter.merging = l.backlog && l.stream.backlogs.Load() <= mergeLanes && (small || l.meter.merging)
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
