package wire

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/batch"
)

// Aborted tells, batch by batch in the order of the log, what belongs to aborted transactions. The zero value is ready.
type Aborted struct {
	on     bool
	list   []kmsg.FetchResponseTopicPartitionAbortedTransaction // by first offset
	active []int64                                              // producers whose transaction is aborted; few
}

// Begin takes the list of a Fetch answer, which it sorts; without on nothing counts as aborted.
func (a *Aborted) Begin(list []kmsg.FetchResponseTopicPartitionAbortedTransaction, on bool) {
	a.on, a.list, a.active = on, list, a.active[:0]
	slices.SortFunc(list, func(x, y kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(x.FirstOffset, y.FirstOffset)
	})
}

// Keeps is false for control batches and for those of an aborted transaction. Every batch must be shown.
func (a *Aborted) Keeps(b batch.Batch) bool {
	for len(a.list) > 0 && a.list[0].FirstOffset <= int64(b.LastOffset()) {
		if !slices.Contains(a.active, a.list[0].ProducerID) {
			a.active = append(a.active, a.list[0].ProducerID)
		}
		a.list = a.list[1:]
	}
	if b.Control() {
		if i := slices.Index(a.active, b.ProducerID()); i >= 0 && b.Abort() {
			a.active = slices.Delete(a.active, i, i+1)
		}
		return false
	}
	return !a.on || !b.Transactional() || !slices.Contains(a.active, b.ProducerID())
}
