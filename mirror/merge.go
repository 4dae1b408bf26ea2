package mirror

// A broker works one connection's requests through replication one after the other, so a partition with replicas takes some hundred to two
// thousand batches a second, however small they are. A lane of small batches that stays behind for that reason merges them by rewriting,
// and is raw again as soon as it has caught up.
const (
	mergeBacklog   = 16   // batches that wait to be sent
	mergeBatchRate = 2500 // batches/s below which it is the broker's round that limits, not the bytes
	mergeBatchSize = 128 << 10
)

// behindLocked is the size up to which batches are merged now; 0 = not at all.
func (l *Lane) behindLocked() int {
	o := &l.out
	if l.plan.Merge == 0 || o.phase != open {
		return 0
	}
	waiting := int(o.queue.tail-o.sent) + len(l.in.entries)
	if waiting < mergeBacklog || l.meter.batchRate == 0 || l.meter.batchRate > mergeBatchRate {
		return 0
	}
	if l.meter.rate/l.meter.batchRate > mergeBatchSize && !l.meter.merging {
		return 0
	}
	return l.plan.Merge
}
