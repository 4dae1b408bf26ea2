package producer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

const readLogBytes = 1 << 20

// readLog looks for our producer id in the headers of the target's batches, from the checkpoint's target offset to the high watermark. The
// log remembers whose a batch is and which sequence it has when the broker's producer state has long forgotten: so nothing needs to be
// compared by content.
func (p *Producer) readLog(ctx context.Context, leader int32, q inquiry, h offsets.Hint) (offsets.Hint, *route.Fault) {
	target := q.slot.target
	starts, err := p.client.ListOffsets(ctx, map[route.Partition]int32{target: leader}, wire.AtStart, false)
	if err == nil {
		err = starts[target].Err
	}
	if err != nil {
		return h, classify(err)
	}
	h.Start, h.Forgotten = starts[target].Offset, !h.Known
	h.ReadFrom = max(q.From, h.Start)
	conn, err := p.client.Dial(ctx, leader)
	if err != nil {
		return h, classify(err)
	}
	defer conn.Close()
	r := &logReader{conn: conn, target: target, pool: slab.NewPool(slab.NewBudget(readLogBytes), readLogBytes), hint: &h, q: q}
	for at := h.ReadFrom; at < h.End; {
		next, err := r.read(ctx, at)
		if err != nil {
			return h, classify(err)
		}
		if next == at {
			return h, &route.Fault{Class: route.Ambiguous, Code: "LOG_SHORT", Err: fmt.Errorf("the target ends at %d, not at %d", at, h.End)}
		}
		at = next
	}
	h.Read = true
	return h, nil
}

type logReader struct {
	conn   *wire.Conn
	target route.Partition
	pool   *slab.Pool
	hint   *offsets.Hint
	q      inquiry
	reader batch.Reader
}

// read notes what one fetch from `at` shows and returns the position after it.
func (r *logReader) read(ctx context.Context, at route.Offset) (route.Offset, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 1000, 1, readLogBytes, -1
	t, part := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	t.Topic = r.target.Topic
	part.Partition, part.FetchOffset, part.PartitionMaxBytes, part.CurrentLeaderEpoch = r.target.Partition, int64(at), readLogBytes, -1
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	if err := r.pool.Budget().Reserve(ctx, readLogBytes); err != nil {
		return at, err
	}
	resp, s, err := r.conn.Fetch(ctx, req, r.pool, readLogBytes)
	if err != nil {
		return at, err
	}
	defer s.Release()
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return at, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return at, errNoAnswer
	}
	a := &resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(a.ErrorCode); err != nil {
		return at, err
	}
	return r.scan(a.RecordBatches, at)
}

func (r *logReader) scan(records []byte, at route.Offset) (route.Offset, error) {
	var ours batch.Batch
	defer func() { r.mark(ours) }()
	for {
		b, rest, err := batch.Next(records)
		if errors.Is(err, io.EOF) || errors.Is(err, batch.ErrTruncated) {
			return at, nil
		}
		if err != nil {
			return at, err
		}
		records, at = rest, b.NextOffset()
		if b.Magic() >= 2 && !b.Control() && b.ProducerID() == r.q.ProducerID && b.ProducerEpoch() >= r.q.ProducerEpoch {
			ours = b
			r.found(b)
		}
	}
}

// mark notes the last record of the last batch of ours that one fetch shows. A record that a cleaner took away, or that can't be decoded,
// leaves no mark.
func (r *logReader) mark(ours batch.Batch) {
	if ours == nil {
		return
	}
	r.hint.LastRecord = offsets.Mark{}
	if r.hint.First < 0 || r.reader.Reset(ours) != nil {
		return
	}
	for {
		rec, err := r.reader.Next()
		if err != nil {
			return
		}
		if rec.Offset == ours.NextOffset()-1 {
			r.hint.LastRecord = offsets.Mark{Digest: rec.Digest(), Timestamp: rec.Timestamp}
		}
	}
}

// found notes a batch of ours. What the broker itself remembers counts more than what the log shows up to its high watermark.
func (r *logReader) found(b batch.Batch) {
	h, last := r.hint, offsets.Plus(b.BaseSequence(), b.LastOffsetDelta())
	if h.Forgotten {
		h.Known, h.Epoch, h.Last, h.Timestamp = true, b.ProducerEpoch(), last, b.MaxTimestamp()
	}
	if h.First = -1; h.Epoch == b.ProducerEpoch() && h.Last == last {
		h.First = b.BaseSequence()
	}
}
