package fetcher

import (
	"errors"
	"io"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// sift leaves in l.batches what is to be forwarded of a partition's answer, and gives the end of everything that was read. An error is
// a batch that must not be forwarded; what is before it is good.
func (l *loop) sift(from route.Offset, rp *kmsg.FetchResponseTopicPartition) (end route.Position, err error) {
	l.batches = l.batches[:0]
	l.aborted.Begin(rp.AbortedTransactions, l.f.cfg.ReadCommitted)
	end = route.Position{Offset: from, LeaderEpoch: -1}
	for rest := rp.RecordBatches; ; {
		b, left, err := batch.Next(rest)
		if errors.Is(err, io.EOF) || errors.Is(err, batch.ErrTruncated) {
			return end, nil // the rest comes with the next fetch
		}
		if err == nil {
			err = b.Check()
		}
		if err == nil {
			err = b.CheckCRC()
		}
		if err != nil {
			return end, err
		}
		rest = left
		keep := l.aborted.Keeps(b)
		if b.NextOffset() <= from {
			continue // a broker looks positions up in a sparse index
		}
		// A gap before the batch is normal: compaction, or markers that retention took. An overlap is not.
		if end.Offset > from && b.BaseOffset() < end.Offset {
			return end, &batch.CorruptError{
				Offset: b.BaseOffset(), Field: "baseOffset", Value: int64(b.BaseOffset()), Reason: "before the end of the batch before it",
			}
		}
		end = route.Position{Offset: b.NextOffset(), LeaderEpoch: b.LeaderEpoch()}
		if keep && b.Records() > 0 {
			l.batches = append(l.batches, b)
		}
	}
}
