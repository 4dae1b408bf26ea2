package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

const (
	readLogBytes = 1 << 20
	maxReads     = 4               // logs of one broker that are read at the same time: their memory is not of the budget
	readTurn     = 5 * time.Second // of reading one log: what is left of it is read in another round
)

// reading is an inquiry for which the log must be read, and what its answer is so far.
type reading struct {
	inquiry
	hint offsets.Hint
}

// found is how far a target's log was read and what was found there of one producer id. What lies below the high watermark stays as it is
// while the same leader leads, so reading goes on where it ended.
type found struct {
	of       subject
	from, at route.Offset

	known       bool // a batch of ours; the rest is of the last one
	epoch       int16
	first, last int32 // its sequences
	after       route.Offset
	timestamp   int64
	mark        offsets.Mark

	replaced bool // the record that was asked for is not ours
}

// subject is what a log was read for.
type subject struct {
	offsets.Inquiry
	topic         route.TopicID
	leader, epoch int32
}

func (q inquiry) subject() subject { return subject{q.Inquiry, q.topic, q.leader, q.epoch} }

// fill completes a hint with what the log shows. What the broker itself remembers counts more than what the log shows up to its high watermark.
func (f *found) fill(h *offsets.Hint) {
	h.Read, h.ReadFrom, h.Forgotten, h.Replaced = true, f.from, !h.Known, f.replaced
	if !f.known {
		return
	}
	if h.Forgotten {
		h.Known, h.Epoch, h.Last, h.Timestamp = true, f.epoch, f.last, f.timestamp
	}
	if h.Epoch == f.epoch && h.Last == f.last {
		h.First, h.LastRecord, h.After = f.first, f.mark, f.after
	}
}

// readLogs reads some logs of one broker side by side, each for one turn, and answers.
func (p *Producer) readLogs(ctx context.Context, from *link, logs []reading, start func(route.Partition) (route.Offset, error)) {
	var wg sync.WaitGroup
	for _, r := range logs {
		wg.Go(func() {
			select {
			case from.reads <- struct{}{}:
				defer func() { <-from.reads }()
			case <-ctx.Done():
			}
			first, err := start(r.slot.target)
			if err == nil {
				err = p.readLog(ctx, &r, first)
			}
			if err != nil {
				r.answer(r.hint, readFault(err))
				return
			}
			r.answer(r.hint, nil)
		})
	}
	wg.Wait()
}

// readFault is classify for a log that could not be read to its end.
func readFault(err error) *route.Fault {
	var unread *unreadError
	if !errors.As(err, &unread) {
		return classify(err)
	}
	f := &route.Fault{Class: route.Busy, Code: "LOG_LONG", Err: err}
	if unread.short {
		f.Class, f.Code = route.Ambiguous, "LOG_SHORT"
	}
	return f
}

// unreadError says how far a log was read.
type unreadError struct {
	at, end route.Offset
	short   bool // there is nothing more
}

func (e *unreadError) Error() string {
	if e.short {
		return fmt.Sprintf("the target ends at %d, not at %d", e.at, e.end)
	}
	return fmt.Sprintf("the target's log is being read, at %d of %d", e.at, e.end)
}

// readLog looks for our producer id in the headers of the target's batches, from the checkpoint's target offset to the high watermark. The
// log remembers whose a batch is and which sequence it has when the broker's producer state has long forgotten: so nothing needs to be
// compared by content. Where the turn ends before the log does, the next inquiry goes on from there.
func (p *Producer) readLog(ctx context.Context, q *reading, start route.Offset) error {
	f := &q.slot.read
	if f.of != q.subject() || f.at > q.hint.End {
		*f = found{of: q.subject(), from: max(q.From, start)}
		f.at = f.from
	}
	f.at = max(f.at, start) // what is deleted meanwhile is not read
	q.hint.Start = start
	if f.at < q.hint.End {
		if err := p.readOn(ctx, q, f); err != nil {
			return err
		}
	}
	f.fill(&q.hint)
	return nil
}

// readOn reads on for one turn.
func (p *Producer) readOn(ctx context.Context, q *reading, f *found) error {
	ends := time.Now().Add(p.turn)
	dialing, cancel := context.WithTimeout(ctx, p.cfg.RequestTimeout)
	conn, err := p.client.Dial(dialing, q.leader)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close()
	r := &logReader{conn: conn, target: q.slot.target, pool: slab.NewPool(slab.NewBudget(readLogBytes), readLogBytes), found: f}
	for f.at < q.hint.End {
		fetching, cancel := context.WithTimeout(ctx, p.cfg.RequestTimeout)
		next, err := r.read(fetching, f.at)
		cancel()
		if err != nil {
			return err
		}
		if next == f.at {
			return &unreadError{at: f.at, end: q.hint.End, short: true}
		}
		f.at = next
		if f.at < q.hint.End && (q.slot.gone.Load() || time.Now().After(ends)) {
			return &unreadError{at: f.at, end: q.hint.End}
		}
	}
	return nil
}

type logReader struct {
	conn   *wire.Conn
	target route.Partition
	pool   *slab.Pool
	found  *found
	reader batch.Reader
}

// read notes what one fetch from `at` shows and returns the position after it.
func (r *logReader) read(ctx context.Context, at route.Offset) (route.Offset, error) {
	a, s, err := r.conn.FetchOne(ctx, wire.One{Partition: r.target, At: at, Pool: r.pool, Bytes: readLogBytes})
	if err != nil {
		return at, err
	}
	defer s.Release()
	return r.scan(a.RecordBatches, at)
}

func (r *logReader) scan(records []byte, at route.Offset) (route.Offset, error) {
	var ours batch.Batch
	defer func() { r.note(ours) }()
	for {
		b, rest, err := batch.Next(records)
		if errors.Is(err, io.EOF) || errors.Is(err, batch.ErrTruncated) {
			return at, nil
		}
		if err != nil {
			return at, err
		}
		records, at = rest, b.NextOffset()
		if of := &r.found.of; b.Magic() >= 2 && !b.Control() && b.ProducerID() == of.ProducerID && b.ProducerEpoch() >= of.ProducerEpoch {
			ours = b
		} else if b.BaseOffset() <= of.From && of.From < b.NextOffset() {
			r.found.replaced = true
		}
	}
}

// note keeps what is to be known of the last batch of ours that one fetch shows. A last record that a cleaner took away, or that can't be
// decoded, leaves no mark.
func (r *logReader) note(ours batch.Batch) {
	if ours == nil {
		return
	}
	f := r.found
	f.known, f.epoch, f.timestamp, f.mark = true, ours.ProducerEpoch(), ours.MaxTimestamp(), offsets.Mark{}
	f.first, f.last, f.after = ours.BaseSequence(), offsets.Plus(ours.BaseSequence(), ours.LastOffsetDelta()), ours.NextOffset()
	if r.reader.Reset(ours) != nil {
		return
	}
	for {
		rec, err := r.reader.Next()
		if err != nil {
			return
		}
		if rec.Offset == ours.NextOffset()-1 {
			f.mark = offsets.Mark{Digest: rec.Digest(), Timestamp: rec.Timestamp}
		}
	}
}
